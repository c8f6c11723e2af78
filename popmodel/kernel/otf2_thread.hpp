// What the records of a thread say: its states, events and messages, those of the threads before kept.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <system_error>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "function_times.hpp"
#include "otf2_library.hpp"
#include "otf2_tables.hpp"

namespace popmodel::otf2 {

class ThreadRecords {
  public:
    int64_t ns(uint64_t ticks) const {
        const bool early = ticks < offset_; // than the archive says: its clocks were corrected
        const uint64_t passed = early ? offset_ - ticks : ticks - offset_;
        const uint64_t rest = part_ ? uint64_t((Wide(passed) * part_) >> 64) : 0;
        const int64_t time = int64_t(passed * whole_ + rest);
        return early ? -time : time;
    }

    // Every record comes by here: its time, which does not go back.
    int64_t at(uint64_t ticks) {
        int64_t time = ns(ticks);
        if (now_ == LATE) {
            since_ = time;
            first_ = std::min(first_, time);
        } else if (time < now_) {
            time = now_;
            tallies_[UNORDERED]++;
        }
        return now_ = time;
    }

    void enter(int64_t t, uint32_t number) {
        const int32_t index = region_index_(number);
        if (index < 0)
            tallies_[UNDEFINED]++;
        else
            enter_region(t, index);
    }
    void enter_region(int64_t t, int32_t index) {
        const Region &region = regions_[size_t(index)];
        const bool is_outer = stack_.empty();
        const int32_t around = is_outer ? base() : stack_.back().state;
        const int32_t holds = is_outer ? -1 : stack_.back().holds;
        const int32_t caller = is_outer ? -1 : stack_.back().caller;
        stack_.emplace_back(index, region.state, holds, caller);
        Frame &frame = stack_.back();
        if (region.is_quiet() && !between_ && around != SCHEDULING && around != NOT_CREATED) {
            frame.state = around;
            frame.caller = index;
            begin_function(t, index);
            return;
        }
        if (region.state == INHERITED) // whoever runs code is no idle thread
            frame.state = around == SCHEDULING || around == NOT_CREATED ? int32_t(RUNNING) : around;
        const bool changes = frame.state != around || region.kind != FUNCTION || between_;
        switch (region.kind) {
        case MPI:
            if (!in_file_call())
                operations_.clear();
            if (depth_++ == 0)
                begin_call(t, region, frame.caller);
            break;
        case PARALLEL:
            if (teams_ == 0 && outlined_ == 0) {
                frame.opened = true;
                if (forks_++ == 0)
                    begin_region(t);
                if (outlined_++ == 0)
                    begin_part(t, region.value);
            } else if (unnamed_ >= 0)
                put(unnamed_, region.value);
            unnamed_ = -1;
            frame.holds = -1;
            break;
        case TASK:
            frame.holds = -1;
            break;
        case FUNCTION:
            frame.caller = index;
            begin_function(t, index);
            if (region.traits & USER)
                emit(t, types_.user, region.value);
            break;
        case PLAIN:
            if (region.type == types_.file_call && !in_file_call())
                operations_.clear(); // those before lack their ends
            if (region.type)
                frame.holds = index;
        }
        if (changes)
            update(t);
    }

    void leave(int64_t t, uint32_t number) { leave_region(t, region_index_(number)); }
    void leave_region(int64_t t, int32_t index) {
        size_t depth = stack_.size();
        if (depth > 1 && stack_.back().region == index && index >= 0 && !between_ &&
            regions_[size_t(index)].is_quiet() && stack_.back().state == stack_[depth - 2].state)
            return pop_function(t);
        while (depth > 0 && stack_[depth - 1].region != index)
            depth--;
        if (depth == 0 || index < 0) {
            tallies_[UNBALANCED]++;
            return;
        }
        tallies_[UNBALANCED] += int64_t(stack_.size() - depth);
        while (stack_.size() >= depth)
            pop(t);
        update(t);
    }

    // Regions by the context that they are called in, where the stack was unwound.
    void enter_context(int64_t t, uint32_t context) { enter(t, region_of(context)); }
    void leave_context(int64_t t, uint32_t context) { leave(t, region_of(context)); }
    void sample() { tallies_[SAMPLES]++; }

    void send(int64_t t, uint32_t peer, uint32_t communicator, uint32_t tag, uint64_t size) {
        sends_.push_back(message(t, peer, communicator, tag, size));
    }
    void receive(int64_t t, uint32_t peer, uint32_t communicator, uint32_t tag, uint64_t size) {
        add_receive(message(t, peer, communicator, tag, size));
    }
    void post(int64_t t, uint64_t request) {
        posts_[request] = {called(t), t, depth_ > 0};
        posted_.push_back(request);
    }
    void complete(int64_t t, uint32_t peer, uint32_t communicator, uint32_t tag, uint64_t size,
                  uint64_t request) {
        Message end = message(t, peer, communicator, tag, size);
        const auto found = posts_.find(request);
        if (found == posts_.end())
            tallies_[UNPOSTED]++;
        else {
            end.logical = found->second.logical;
            end.order = found->second.order;
            posts_.erase(found);
        }
        add_receive(end);
    }
    void completed() { completions_++; }

    void probe(uint32_t peer, uint32_t communicator, uint32_t tag, uint64_t message) {
        completions_++;
        probed_[message] = {communicator, peer, tag};
    }
    void receive_probed(int64_t t, uint64_t message, uint64_t size) {
        const auto found = probed_.find(message);
        if (found == probed_.end())
            return;
        const auto [communicator, peer, tag] = found->second;
        probed_.erase(found);
        receive(t, peer, communicator, tag, size);
    }
    void post_probed(int64_t t, uint64_t message, uint64_t request) {
        post(t, request);
        requested_[request] = message;
    }
    void complete_probed(int64_t t, uint64_t request, uint64_t size) {
        const auto of = requested_.find(request);
        if (of == requested_.end())
            return;
        const auto found = probed_.find(of->second);
        requested_.erase(of);
        if (found == probed_.end())
            return;
        const auto [communicator, peer, tag] = found->second;
        probed_.erase(found);
        complete(t, peer, communicator, tag, size, request);
    }

    void collective(uint8_t op, uint32_t communicator, uint32_t root, uint64_t sent,
                    uint64_t received) {
        if (call_.arguments >= 0)
            arguments(call_.arguments, op, communicator, root, sent, received);
    }
    void request_collective(uint64_t request) {
        if (call_.arguments >= 0)
            collectives_[request] = call_.arguments;
    }
    void complete_collective(uint8_t op, uint32_t communicator, uint32_t root, uint64_t sent,
                             uint64_t received, uint64_t request) {
        completions_++;
        const auto found = collectives_.find(request);
        if (found == collectives_.end())
            return;
        arguments(found->second, op, communicator, root, sent, received);
        collectives_.erase(found);
    }

    // Operations on files. Of those inside each other, which are layers of one, the outermost tells
    // the bytes; one in no call, whose region was filtered, is one.
    void begin_file_operation(int64_t t, uint32_t handle, uint8_t mode, uint32_t flags,
                              uint64_t operation) {
        constexpr uint32_t NON_BLOCKING = 1;
        if (flags & NON_BLOCKING)
            return;
        if (!in_file_call()) {
            operations_.clear();
            if (mode < FILE_MODES && !parallel_handles_.count(handle)) {
                operation_region_ = int32_t(regions_.size()) - FILE_MODES + mode;
                enter_region(t, operation_region_);
            }
        }
        operations_.push_back(operation);
    }
    void end_file_operation(int64_t t, uint64_t bytes, uint64_t operation) {
        const auto begun = std::find(operations_.rbegin(), operations_.rend(), operation);
        const bool is_inner = begun != operations_.rend() && begun + 1 != operations_.rend();
        if (begun != operations_.rend())
            operations_.erase(begun.base() - 1, operations_.end());
        constexpr uint64_t MOST = uint64_t(1) << 62; // more stand for an amount that is not known
        if (!is_inner && bytes < MOST)
            emit(t, depth_ > 0 ? types_.mpi_file_bytes : types_.file_bytes, int64_t(bytes));
        if (operations_.empty() && operation_region_ >= 0)
            leave_region(t, std::exchange(operation_region_, -1));
    }

    void fork(int64_t t) {
        if (forks_++ == 0)
            begin_region(t);
        between_ = true;
        update(t);
    }
    void join(int64_t t) {
        if (forks_ > 0 && --forks_ == 0)
            end_region(t);
        between_ = false;
        update(t);
    }
    void begin_team(int64_t t) {
        teams_++;
        between_ = false;
        known_ = true;
        if (outlined_++ == 0) {
            unnamed_ = here();
            begin_part(t, int64_t(regions_.size()) + 1);
        }
        update(t);
    }
    void end_team(int64_t t) {
        if (teams_ > 0 && teams_-- > 0 && --outlined_ == 0)
            end_part(t);
        between_ = forks_ > 0;
        unnamed_ = -1;
        update(t);
    }
    void begin_thread(int64_t t, bool begins) {
        known_ = started_ = begins;
        update(t);
    }
    void switch_task(int64_t t, uint32_t team, uint32_t thread, uint32_t generation) {
        go_to(t, generation ? Task{team, thread, generation} : Task{});
        update(t);
    }
    void complete_task(int64_t t, uint32_t team, uint32_t thread, uint32_t generation) {
        const Task task{team, thread, generation};
        if (task == task_) {
            while (!stack_.empty())
                pop(t);
            go_to(t, {}); // shown with the next record, which goes to another task
        }
        suspended_.erase(task);
    }

    void measure(int64_t t, bool on) {
        off_ = !on;
        update(t);
    }
    void flush(int64_t t, uint64_t until) {
        tallies_[FLUSHES]++;
        show(t, FLUSHING);
        now_ = std::max(now_, ns(until));
        update(now_);
    }

    void count(int64_t t, uint32_t metric, uint8_t number, const uint8_t *kinds,
               const uint64_t *values) {
        const auto found = counters_.find(metric);
        if (found == counters_.end()) {
            tallies_[NOT_HERE]++;
            return;
        }
        std::vector<int64_t> &last = read_[metric];
        const bool first = last.empty();
        last.resize(found->second.size());
        for (size_t i = 0; i < std::min<size_t>(number, last.size()); i++) {
            const Counter &counter = found->second[i];
            if (!counter.type)
                continue;
            constexpr uint8_t FLOAT = 9, DOUBLE = 10;
            double real = 0;
            if (kinds[i] == DOUBLE)
                std::memcpy(&real, &values[i], sizeof real);
            else if (kinds[i] == FLOAT) {
                float shorter;
                std::memcpy(&shorter, &values[i], sizeof shorter);
                real = double(shorter);
            } else if (counter.scale != 1)
                real = double(int64_t(values[i]));
            int64_t value = int64_t(values[i]);
            if (kinds[i] == FLOAT || kinds[i] == DOUBLE || counter.scale != 1) {
                real *= counter.scale;
                value = std::abs(real) < 9e18 ? int64_t(std::llround(real)) : 0;
            }
            if (counter.relative)
                emit(t, counter.type, value);
            else if (!first) // the first reading counts from a time before the trace
                emit(t, counter.type, int64_t(uint64_t(value) - uint64_t(last[i])));
            last[i] = value;
        }
    }

    // Run what a record does; no exception may pass through the library.
    template <typename Record> int record(Record &&of) noexcept {
        try {
            of();
            return GO_ON;
        } catch (...) {
            failed_ = true;
            return STOP;
        }
    }

  protected:
    using Wide = unsigned __int128;
    struct Task {
        uint32_t team = 0, thread = 0, generation = 0; // all 0: the implicit one
        bool operator==(const Task &o) const {
            return team == o.team && thread == o.thread && generation == o.generation;
        }
        bool operator<(const Task &o) const {
            return std::tie(team, thread, generation) < std::tie(o.team, o.thread, o.generation);
        }
    };
    struct Call {
        int64_t entry = 0, row = -1, arguments = -1;
        size_t sends = 0, receives = 0;
        const Region *region = nullptr;
    };
    static constexpr int64_t LATE = std::numeric_limits<int64_t>::max();
    static constexpr int64_t WHOLE_REGION = 3; // of the event of a parallel construct
    static constexpr int32_t FILE_MODES = 3;   // reading, writing, flushing: the last regions

    // Begin with a thread, which has this place among all.
    void begin(int32_t location, int64_t process, bool first) {
        for (const auto &[c, rank] : ranks_[process_])
            rank_[size_t(c)] = -1;
        for (const auto &[c, rank] : ranks_[process])
            rank_[size_t(c)] = rank;
        process_ = process;
        master_ = first;
        stack_.clear();
        suspended_.clear();
        functions_.begin(location, first);
        useful_ = 0;
        posts_.clear(), posted_.clear(), probed_.clear(), requested_.clear();
        collectives_.clear(), read_.clear(), operations_.clear();
        operation_region_ = -1;
        task_ = {};
        call_ = {};
        depth_ = forks_ = teams_ = outlined_ = 0;
        between_ = known_ = started_ = off_ = false;
        unnamed_ = -1;
        location_ = location;
        fresh_ = state_.size();
        now_ = since_ = LATE;
        shown_ = base();
        held_ = -1;
    }

    void finish() {
        if (now_ == LATE)
            return;
        functions_.finish(now_, useful(now_));
        show(now_, -1);
        last_ = std::max(last_, now_);
    }

    // State of a thread outside of all regions.
    int32_t base() const {
        if (!(task_ == Task{}))
            return SCHEDULING;
        if (master_ || teams_ > 0 || started_)
            return RUNNING;
        return known_ ? SCHEDULING : NOT_CREATED;
    }

    int64_t here() const { return taken_ + int64_t(time_.size()); } // row of the next event
    void emit(int64_t t, uint32_t type, int64_t value) {
        time_.push_back(t);
        type_.push_back(type);
        value_.push_back(value);
    }
    void put(int64_t row, int64_t value) {
        if (row >= taken_)
            value_[size_t(row - taken_)] = value;
        else
            patches_.push_back({row, value});
    }

    void show(int64_t t, int32_t state) {
        if (state == shown_)
            return;
        if (t > since_ && shown_ != NO_STATE) {
            if (state_.size() > fresh_ && state_.back() == shown_ && end_.back() == since_)
                end_.back() = t;
            else {
                begin_.push_back(since_);
                end_.push_back(t);
                state_.push_back(shown_);
            }
        }
        useful_ = useful(t);
        since_ = t;
        shown_ = state;
    }

    int64_t useful(int64_t t) const {
        const Pieces &pieces = functions_.pieces;
        return useful_ + (shown_ == RUNNING ? pieces.passed(t) - pieces.passed(since_) : 0);
    }

    // A parallel region, and the part that a thread takes in it.
    void begin_region(int64_t t) {
        functions_.fork(t);
        emit(t, types_.parallel, WHOLE_REGION);
    }
    void end_region(int64_t t) {
        functions_.join(t);
        emit(t, types_.parallel, 0);
    }
    void begin_part(int64_t t, int64_t region) {
        functions_.begin_part(t, useful(t));
        emit(t, types_.outlined, region);
    }
    void end_part(int64_t t) {
        functions_.end_part(t, useful(t));
        emit(t, types_.outlined, 0);
    }

    // Show the state of the innermost region, and open and close the events of barriers and locks.
    void update(int64_t t) {
        const int32_t holds = stack_.empty() ? -1 : stack_.back().holds;
        if (holds != held_) {
            const uint32_t type = holds < 0 ? 0 : regions_[size_t(holds)].type;
            if (held_ >= 0 && regions_[size_t(held_)].type != type)
                emit(t, regions_[size_t(held_)].type, 0);
            if (type)
                emit(t, type, regions_[size_t(holds)].value);
            held_ = holds;
        }
        int32_t state = stack_.empty() ? base() : stack_.back().state;
        const bool told = !stack_.empty() &&
                          regions_[size_t(stack_.back().region)].traits & EXPLICIT;
        if (between_ && depth_ == 0 && !told)
            state = SCHEDULING;
        show(t, off_ ? int32_t(OFF) : state);
    }

    void begin_function(int64_t t, int32_t function) {
        const int64_t now = useful(t);
        functions_.open(function, t, now);
        functions_.innermost(function, now);
    }

    void pop_function(int64_t t) {
        const Frame &frame = stack_.back();
        const int32_t function = frame.caller == frame.region ? frame.region : -1;
        stack_.pop_back();
        if (function >= 0) {
            const int64_t now = useful(t);
            functions_.close(function, t, now);
            functions_.innermost(stack_.empty() ? -1 : stack_.back().caller, now);
        }
    }

    void pop(int64_t t) {
        const Region &region = regions_[size_t(stack_.back().region)];
        const bool opened = stack_.back().opened;
        pop_function(t);
        if (region.kind == MPI && --depth_ == 0)
            end_call(t);
        else if (region.traits & USER)
            emit(t, types_.user, 0);
        if (opened) {
            if (--outlined_ == 0)
                end_part(t);
            if (--forks_ == 0)
                end_region(t);
        }
    }

    void begin_call(int64_t t, const Region &region, int32_t caller) {
        call_ = {t, here(), -1, sends_.size(), receives_.size(), &region};
        completions_ = 0;
        emit(t, region.type, region.value);
        if (region.traits & COLLECTIVE) {
            call_.arguments = here();
            for (const uint32_t type :
                 {types_.sent, types_.received, types_.communicator, types_.is_root})
                emit(t, type, 0);
        }
        if (caller >= 0)
            emit(t, types_.caller, int64_t(caller) + 1);
    }

    // The messages of a call end with it, or begin with it.
    void end_call(int64_t t) {
        const Region &region = *call_.region;
        const bool by_entry = region.traits & BY_ENTRY;
        for (size_t i = call_.sends; i < sends_.size(); i++)
            sends_[i].physical = by_entry ? call_.entry : t;
        for (size_t i = call_.receives; i < receives_.size(); i++)
            receives_[i].physical = t;
        if (!by_entry)
            for (const uint64_t request : posted_) {
                const auto found = posts_.find(request);
                if (found != posts_.end() && found->second.pending)
                    found->second.logical = t;
            }
        for (const uint64_t request : posted_) {
            const auto found = posts_.find(request);
            if (found != posts_.end())
                found->second.pending = false;
        }
        posted_.clear();
        if (region.traits & TEST && completions_ == 0)
            put(call_.row, region.missed);
        emit(t, region.type, 0);
        call_ = {};
    }

    Message message(int64_t t, uint32_t peer, uint32_t communicator, uint32_t tag,
                    uint64_t size) const {
        return {called(t), t, t, int64_t(size), comm_index_(communicator), int32_t(peer),
                int32_t(tag), int32_t(process_), location_};
    }
    uint32_t region_of(uint32_t context) const {
        constexpr uint32_t UNKNOWN = 0xffffffff;
        const int32_t index = context_index_(context);
        return index < 0 ? UNKNOWN : contexts_[size_t(index)];
    }
    bool in_file_call() const {
        return depth_ > 0 || (held_ >= 0 && regions_[size_t(held_)].type == types_.file_call);
    }
    int64_t called(int64_t t) const { return depth_ > 0 ? call_.entry : t; }
    void add_receive(const Message &message) {
        completions_++;
        receives_.push_back(message);
    }

    void arguments(int64_t row, uint8_t op, uint32_t communicator, uint32_t root, uint64_t sent,
                   uint64_t received) {
        const int32_t c = comm_index_(communicator);
        if (c < 0) {
            tallies_[UNDEFINED]++;
            return;
        }
        const Communicator &of = comms_[size_t(c)];
        constexpr uint32_t SELF = 0xfffffffe;
        const int64_t rank = of.own ? 0 : rank_[size_t(c)];
        const bool is_root = root == SELF || int64_t(root) == rank;
        const int64_t size = of.own ? 1 : int64_t(of.members.size());
        const auto [put_in, got] =
            contribution(op, size, std::max<int64_t>(rank, 0), is_root, int64_t(sent),
                         int64_t(received));
        put(row, put_in);
        put(row + 1, got);
        put(row + 2, of.number + (of.own ? process_ : 0));
        put(row + 3, is_root);
    }

    void go_to(int64_t t, const Task &task) {
        if (task == task_)
            return;
        int32_t around = functions_.around();
        if (task_ == Task{}) { // other tasks are run where the implicit one is
            suspended_around_ = around;
            around = functions_.innermost();
        }
        suspended_[task_] = std::move(stack_);
        task_ = task;
        stack_ = std::move(suspended_[task]);
        suspended_.erase(task);
        const int32_t caller = stack_.empty() ? -1 : stack_.back().caller;
        functions_.around(task == Task{} ? suspended_around_ : around, useful(t));
        functions_.innermost(caller, useful(t));
    }

    template <typename T> static void room(std::vector<T> &column, size_t rows) {
        if (rows == 0)
            return;
        column.reserve(rows);
#ifdef MADV_HUGEPAGE
        const uintptr_t page = 1 << 12, begin = (uintptr_t(column.data()) + page - 1) / page * page;
        madvise(reinterpret_cast<void *>(begin), rows * sizeof(T) / page * page, MADV_HUGEPAGE);
#endif
    }

    template <typename T> static void append(int file, std::vector<T> &values) {
        const char *data = reinterpret_cast<const char *>(values.data());
        for (size_t left = values.size() * sizeof(T); left > 0;) {
            const ssize_t size = ::write(file, data, left);
            if (size < 0 && errno != EINTR)
                throw std::system_error(errno, std::generic_category());
            data += std::max<ssize_t>(size, 0);
            left -= size_t(std::max<ssize_t>(size, 0));
        }
        values.clear();
    }

    // Take what a reader of further threads has in memory.
    void take(ThreadRecords &other) {
        const auto append = [](auto &to, auto &from) {
            to.insert(to.end(), from.begin(), from.end());
            from = {};
        };
        append(sends_, other.sends_), append(receives_, other.receives_);
        append(begin_, other.begin_), append(end_, other.end_), append(state_, other.state_);
        append(time_, other.time_), append(type_, other.type_), append(value_, other.value_);
        functions_.take(other.functions_);
        for (int i = 0; i < TALLIES; i++)
            tallies_[i] += other.tallies_[i];
        first_ = std::min(first_, other.first_);
        last_ = std::max(last_, other.last_);
    }

    bool failed_ = false;
    std::vector<Region> regions_;
    std::vector<Communicator> comms_;
    std::unordered_map<int64_t, std::vector<std::pair<int32_t, int32_t>>> ranks_; // by process
    std::unordered_map<uint32_t, std::vector<Counter>> counters_;
    Index region_index_, comm_index_, context_index_;
    std::vector<uint32_t> contexts_; // the region of each
    std::unordered_set<uint32_t> parallel_handles_; // of files, such as those of MPI
    EventTypes types_{};
    uint64_t offset_ = 0, whole_ = 1, part_ = 0;
    FunctionTimes functions_;
    int64_t tallies_[TALLIES] = {};
    int64_t first_ = LATE, last_ = 0;

    // Of the location that is read.
    std::vector<int64_t> begin_, end_, time_, value_;
    std::vector<int32_t> state_;
    std::vector<uint32_t> type_;
    std::vector<Message> sends_, receives_;
    std::vector<std::pair<int64_t, int64_t>> patches_; // rows that were taken, and their values
    Stack stack_;
    std::map<Task, Stack> suspended_;
    std::vector<int32_t> rank_;
    std::unordered_map<uint64_t, Post> posts_;
    std::vector<uint64_t> posted_;
    std::unordered_map<uint64_t, Probed> probed_;
    std::unordered_map<uint64_t, uint64_t> requested_;
    std::unordered_map<uint64_t, int64_t> collectives_; // row of the arguments by request
    std::unordered_map<uint32_t, std::vector<int64_t>> read_;
    std::vector<uint64_t> operations_; // on files, that have begun
    int32_t operation_region_ = -1;    // that stands for the call of the first
    Task task_;
    Call call_;
    size_t fresh_ = 0; // states of other locations in memory
    int32_t location_ = -1;
    int64_t process_ = -1, taken_ = 0, taken_states_ = 0, now_ = LATE, since_ = LATE, unnamed_ = -1;
    int64_t useful_ = 0; // before `since_`
    int32_t suspended_around_ = -1, depth_ = 0, forks_ = 0, teams_ = 0, outlined_ = 0, shown_ = 0, held_ = -1;
    int64_t completions_ = 0;
    bool master_ = false, between_ = false, known_ = false, started_ = false, off_ = false;
};

} // namespace popmodel::otf2
