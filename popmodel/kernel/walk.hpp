// Walks the trail of a replay from one process's end back to a start, and then forwards again: every
// step on the way, with the charge that it took.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "scratch.hpp"

#include "engine.hpp"

namespace popmodel {

// Numbers shared with popmodel.simulator.execution.PathPart.
enum class Part : uint8_t {
    COMPUTE,
    SEND,
    RECEIVE,
    TRANSFER,
    COLLECTIVE,
    REQUEST,
    MESSAGE,         // of a collective carried out as messages, like the two overheads after it
    MESSAGE_SEND,
    MESSAGE_RECEIVE,
};

// Numbers shared with popmodel.simulator.costs: the table whose row a step is charged.
enum class Table : uint8_t {
    BURST,
    SEND_OVERHEAD,
    RECEIVE_BEFORE,
    RECEIVE_AFTER,
    TRANSFER,
    COLLECTIVE_COST,
    MEMBER_COST,
    REQUEST_COST,
    UNEVEN_COST
};

struct Path {
    popmodel::LongVector<int32_t> process, source, row, charge;
    popmodel::LongVector<int64_t> operation;
    popmodel::LongVector<uint8_t> part, table;
};

class Walk {
  public:
    Walk(const Program &program, const Network<Traced> &network, const Carried &carried,
         const Trail &trail)
        : program_(program), net_(network), carried_(carried), trail_(trail) {}

    // The way to the end of a process whose last entry is given.
    Path to(int32_t last) {
        popmodel::LongVector<int32_t> entries;
        for (int32_t e = last; e >= 0; e = trail_[size_t(e)].parent)
            entries.push_back(e);
        begin(trail_[size_t(entries.back())]);
        for (size_t k = entries.size() - 1; k-- > 0;)
            follow(trail_[size_t(entries[k])]);
        follow({program_.offsets[process_ + 1], 0, process_, 0, Join::START, false});
        return std::move(path_);
    }

  private:
    // What somebody waited for: the point of another process, or an earlier one of its own.
    struct Point {
        int32_t process;
        bool posting;         // a receive, else a send or the arrival at a collective
        bool collective;      // arrives at a collective
        int32_t target;       // message or collective
        int32_t step = -1;    // in a collective that is carried out as messages
    };

    void begin(const Entry &start) {
        process_ = start.process;
        operation_ = start.operation + 1;
        step_ = 0;
        inside_ = false;
    }

    // Goes on to where the next entry was decided, and over to the process that waited for it.
    void follow(const Entry &next) {
        if (next.join == Join::START)
            return finish();
        const int32_t x = program_.target[next.operation];
        const Op op = Op(program_.kind[next.operation]);
        if (op == COLLECTIVE || op == WAIT_COLLECTIVE) {
            if (cost(x).rule == MESSAGES)
                return follow_step(next, x);
            go({process_, false, true, x});
            charge_collective(next, x);
        } else {
            go({process_, next.posted, false, x});
            if (next.join == Join::RECEIVED || net_.sender_waits_for_transfer)
                add(Part::TRANSFER, Table::TRANSFER, next, x, program_.message_class[x]);
        }
        enter(next);
        if (next.join == Join::RECEIVED)
            received(Part::RECEIVE, next.operation, x, program_.message_class[x]);
    }

    // What the one that leaves a collective pays after the one that decided it has arrived, which
    // is where the walk is.
    void charge_collective(const Entry &next, int32_t x) {
        const int32_t row = program_.collective_class[x];
        switch (cost(x).rule) {
        case TO_ROOT_PAID: {
            const Table table =
                program_.root[x] == process_ ? Table::COLLECTIVE_COST : Table::MEMBER_COST;
            return step(Part::COLLECTIVE, table, process_, process_, operation_, x, row);
        }
        case LAST_DECIDES: {
            const int64_t *first = program_.uneven_operation;
            const auto found = std::lower_bound(first, first + program_.uneven, operation_);
            return add(Part::COLLECTIVE, Table::UNEVEN_COST, next, x, int32_t(found - first));
        }
        default: return add(Part::COLLECTIVE, Table::COLLECTIVE_COST, next, x, row);
        }
    }

    void follow_step(const Entry &next, int32_t c) {
        const int32_t rank = carried_.rank_of(next.process, c, program_.members[c]);
        Step x;
        find(next.process, c, rank, next.step, x);
        const bool receives = next.join == Join::RECEIVED;
        // A message is posted by its receiver and sent by its sender.
        const bool own = next.posted == receives;
        const int32_t sent_in = own        ? next.step
                                : receives ? sending_step(c, x.source, rank, next.step)
                                           : x.arrives_in;
        go({process_, next.posted, false, c, sent_in});
        if (receives || net_.sender_waits_for_transfer)
            add(Part::MESSAGE, Table::TRANSFER, next, c, int32_t(receives ? x.in : x.out));
        enter(next);
        if (receives)
            received(Part::MESSAGE_RECEIVE, next.operation, c, int32_t(x.in));
        inside_ = true;
        step_ = next.step;
        stage_ = receives ? Stage::DONE : Stage::SENT;
    }

    // The step in which a rank sends the message that another receives in a step.
    int32_t sending_step(int32_t c, int32_t from, int32_t to, int32_t arrives_in) const {
        Step x;
        for (int32_t s = 0; find(process_, c, from, s, x); s++)
            if (x.to == to && x.arrives_in == arrives_in)
                return s;
        throw std::logic_error("nobody sends a message of a collective");
    }

    void enter(const Entry &next) {
        process_ = next.process;
        operation_ = next.operation + 1;
        inside_ = false;
    }

    void finish() {
        const int64_t end = program_.offsets[process_ + 1];
        go({process_, false, false, -1});
        if (program_.tail[process_] != 0)
            step(Part::COMPUTE, Table::BURST, process_, process_, -1, -1, -1);
        operation_ = end;
    }

    // Passes the operations of the process that the walk is in up to a point, and stays there.
    void go(const Point &until) {
        const int64_t end = program_.offsets[process_ + 1];
        if (inside_) {
            operation_--;
            if (carry_on(until))
                return;
            operation_++;
            inside_ = false;
        }
        for (; operation_ < end; operation_++)
            if (pass(until))
                return;
        if (until.target >= 0)
            throw std::logic_error("the critical path leads nowhere");
    }

    // Passes one operation; true if the point is in it.
    bool pass(const Point &until) {
        const int64_t i = operation_;
        const Op op = Op(program_.kind[i]);
        const int32_t x = program_.target[i];
        const bool here = until.target == x && until.step < 0;
        if (program_.burst[i] != 0)
            step(Part::COMPUTE, Table::BURST, process_, process_, i, -1, -1);
        if (op < COLLECTIVE) {
            const int32_t row = program_.message_class[x];
            const bool mine = here && !until.collective;
            if (op == SEND || op == ISEND) {
                own(Part::SEND, Table::SEND_OVERHEAD, x, row);
                return mine && !until.posting;
            }
            if (op == RECEIVE || op == WAIT_RECEIVE)
                own(Part::RECEIVE, Table::RECEIVE_BEFORE, x, row);
            if (mine && until.posting && (op == RECEIVE || op == POST))
                return true;
            if (op == RECEIVE || op == WAIT_RECEIVE)
                received(Part::RECEIVE, i, x, row);
            return false;
        }
        const int32_t row = program_.collective_class[x];
        if (op != COLLECTIVE)
            own(Part::REQUEST, Table::REQUEST_COST, x, row);
        if (here && until.collective && op != WAIT_COLLECTIVE)
            return true;
        if (op == ARRIVE)
            return false;
        const Rule rule = cost(x).rule;
        if (rule == MESSAGES) {
            step_ = 0;
            stage_ = Stage::BEGIN;
            return carry_on(until);
        }
        if (rule == TO_ROOT_PAID && program_.root[x] != process_)
            own(Part::COLLECTIVE, Table::MEMBER_COST, x, row);
        return false;
    }

    enum class Stage : uint8_t { BEGIN, SENT, DONE };

    // Passes the steps of a collective that are left; true if the point is in one of them.
    bool carry_on(const Point &until) {
        const int32_t c = program_.target[operation_];
        const int32_t rank = carried_.rank_of(process_, c, program_.members[c]);
        const bool here = until.target == c && until.step >= 0;
        Step x;
        for (; find(process_, c, rank, step_, x); step_++, stage_ = Stage::BEGIN) {
            const bool sends = x.to >= 0, receives = x.source >= 0;
            const bool mine = here && until.step == step_;
            const bool posts = here && until.step == (x.posts >= 0 ? x.posts : step_) && !x.posted;
            const auto out = int32_t(x.out), in = int32_t(x.in);
            if (stage_ == Stage::BEGIN) {
                if (receives && !sends)
                    own(Part::MESSAGE_RECEIVE, Table::RECEIVE_BEFORE, c, in);
                if (posts && until.posting)
                    return true;
                if (sends)
                    own(Part::MESSAGE_SEND, Table::SEND_OVERHEAD, c, out);
                if (mine && !until.posting)
                    return true;
            }
            if (stage_ != Stage::DONE && sends && receives)
                own(Part::MESSAGE_RECEIVE, Table::RECEIVE_BEFORE, c, in);
            if (stage_ != Stage::DONE && receives)
                received(Part::MESSAGE_RECEIVE, operation_, c, in);
        }
        return false;
    }

    bool find(int32_t p, int32_t c, int32_t rank, int32_t step, Step &x) const {
        return carried_.find(p, c, program_.members[c], rank, step, x);
    }

    const CollectiveCost<Traced> &cost(int32_t c) const {
        return net_.collective[size_t(program_.collective_class[c])];
    }

    void own(Part part, Table table, int32_t row, int32_t charge) {
        step(part, table, process_, process_, operation_, row, charge);
    }

    // What the process pays for a message that has arrived.
    void received(Part part, int64_t operation, int32_t row, int32_t charge) {
        if (net_.message[size_t(charge)].receive_after.t != 0)
            step(part, Table::RECEIVE_AFTER, process_, process_, operation, row, charge);
    }

    // What the one that waited pays, from the process that the walk is in.
    void add(Part part, Table table, const Entry &next, int32_t row, int32_t charge) {
        step(part, table, next.process, process_, next.operation, row, charge);
    }

    void step(Part part, Table table, int32_t process, int32_t source, int64_t operation,
              int32_t row, int32_t charge) {
        path_.process.push_back(process);
        path_.source.push_back(source);
        path_.operation.push_back(operation);
        path_.part.push_back(uint8_t(part));
        path_.row.push_back(row);
        path_.table.push_back(uint8_t(table));
        path_.charge.push_back(charge);
    }

    const Program &program_;
    const Network<Traced> &net_;
    const Carried &carried_;
    const Trail &trail_;
    Path path_;
    int32_t process_ = 0;
    int64_t operation_ = 0; // the next one to pass; inside a collective the one after it
    bool inside_ = false;   // in steps of a collective that are left
    int32_t step_ = 0;
    Stage stage_ = Stage::BEGIN;
};

} // namespace popmodel
