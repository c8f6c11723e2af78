// Links whose bandwidth is shared by the messages that use them at the same time, at flow level.
//
// Rates are max-min fair: the links that would be full first, and the messages that cannot go
// faster, decide in turn (progressive filling; D. Bertsekas, R. Gallager, Data Networks, 1992,
// 6.5.2). They change only when a message starts or ends, and only for messages that have to do with
// it over the links that they share.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "scratch.hpp"

#include "transfers.hpp"

namespace popmodel::contended {

// Where messages go. A pair of nodes is from * nodes + to. Messages of pairs that are not there
// share nothing, or links inside their node.
struct Routes {
    size_t pairs;
    const int64_t *pair;     // ascending
    const int64_t *offsets;  // per pair, of the next two
    const int32_t *link;
    const double *latency;   // per pair, ns, beside that of the message
    const double *capacity;  // per link, B/ns
    size_t links;
    double within;           // capacity of each process's link, each way, inside its node; 0: enough
};

class Fair {
  public:
    Fair(const Routes &routes, const popmodel::LongVector<int32_t> &node, int32_t nodes,
         const Transfers &transfers)
        : routes_(routes), node_(node), nodes_(nodes), transfers_(transfers),
          link_(routes.links + (routes.within > 0 ? 2 * node.size() : 0)) {
        for (size_t l = 0; l < link_.size(); l++)
            link_[l].capacity = l < routes.links ? routes.capacity[l] : routes.within;
    }

    bool shared(int32_t sender, int32_t receiver) const {
        if (find(sender, receiver) >= 0)
            return true;
        return sender != receiver && routes_.within > 0 &&
               node_[size_t(sender)] == node_[size_t(receiver)];
    }

    void add(int32_t x) {
        const Transfer &transfer = transfers_[x];
        if (size_t(x) >= flow_.size())
            flow_.resize(transfers_.size());
        Flow &flow = flow_[size_t(x)];
        const uint32_t version = flow.version + 1; // events of those of this number before are void
        flow = Flow{};
        flow.version = version;
        const int64_t route = find(transfer.sender, transfer.receiver);
        const double latency = route < 0 ? 0.0 : routes_.latency[route];
        flow.route = route;
        // What has no bytes, but a header, shares nothing: it is there after its time alone.
        const double shared = transfer.bytes > 0 ? transfer.busy : 0.0;
        agenda_.begin(transfer.ready + (transfer.time - shared) + latency, x, transfer);
    }

    bool next(popmodel::LongVector<Arrival> &arrivals) {
        drop_void();
        if (agenda_.empty())
            return false;
        const double now = agenda_.next().time;
        touched_.clear();
        for (; !agenda_.empty() && agenda_.next().time == now; drop_void()) {
            const Event event = agenda_.take();
            const int32_t x = event.transfer;
            if (!event.ends()) {
                if (begin(x, now))
                    continue;
            } else {
                leave(x);
            }
            arrivals.push_back({x, now});
            over_.push_back(x);
        }
        if (!touched_.empty())
            share(now);
        return true;
    }

    popmodel::LongVector<int32_t> &over() { return over_; }

  private:
    struct Flow {
        int64_t route = -1;
        double left = 0;      // bytes at `since`
        double since = 0;     // ns
        double rate = 0;      // B/ns
        double fastest = 0;   // B/ns
        uint32_t version = 0; // of its end
        uint32_t seen = 0;    // in which round of sharing
        bool set = false;     // whether that has found its rate
    };

    struct Link {
        double capacity = 0;
        double left = 0;  // of it, in a round of sharing
        int32_t open = 0; // flows without a rate
        uint32_t seen = 0;
        popmodel::LongVector<int32_t> flows;
    };

    int64_t find(int32_t sender, int32_t receiver) const {
        const int64_t pair = int64_t(node_[size_t(sender)]) * nodes_ + node_[size_t(receiver)];
        const int64_t *end = routes_.pair + routes_.pairs;
        const int64_t *found = std::lower_bound(routes_.pair, end, pair);
        return found == end || *found != pair ? -1 : found - routes_.pair;
    }

    // Calls with each link of a flow.
    template <typename Visit> void each(int32_t x, Visit visit) const {
        const Flow &flow = flow_[size_t(x)];
        if (flow.route < 0) {
            const size_t first = routes_.links;
            visit(first + size_t(transfers_[x].sender));
            visit(first + node_.size() + size_t(transfers_[x].receiver));
            return;
        }
        for (int64_t i = routes_.offsets[flow.route]; i < routes_.offsets[flow.route + 1]; i++)
            visit(size_t(routes_.link[i]));
    }

    // Lets a transfer take part; false if it has nothing to send.
    bool begin(int32_t x, double now) {
        const Transfer &transfer = transfers_[x];
        if (transfer.bytes <= 0)
            return false;
        Flow &flow = flow_[size_t(x)];
        flow.left = transfer.bytes;
        flow.since = now;
        flow.fastest = transfer.busy > 0 ? transfer.bytes / transfer.busy
                                         : std::numeric_limits<double>::infinity();
        const size_t before = touched_.size();
        each(x, [&](size_t l) {
            link_[l].flows.push_back(x);
            touched_.push_back(l);
        });
        if (touched_.size() == before) // nothing to share on its way
            agenda_.end(now + transfer.busy, x, flow.version);
        return true;
    }

    void leave(int32_t x) {
        each(x, [&](size_t l) {
            popmodel::LongVector<int32_t> &flows = link_[l].flows;
            *std::find(flows.begin(), flows.end(), x) = flows.back();
            flows.pop_back();
            touched_.push_back(l);
        });
    }

    void drop_void() {
        while (!agenda_.empty() && agenda_.next().ends() &&
               agenda_.next().version != flow_[size_t(agenda_.next().transfer)].version)
            agenda_.take();
    }

    // Finds the rates of all flows that are connected with a touched link.
    void share(double now) {
        collect();
        using Share = std::pair<double, size_t>; // of a link, or of a flow that has its own limit
        std::priority_queue<Share, popmodel::LongVector<Share>, std::greater<>> shares;
        for (size_t l : links_)
            if (link_[l].open > 0)
                shares.push({link_[l].left / link_[l].open, l});
        std::sort(flows_.begin(), flows_.end(), [&](int32_t a, int32_t b) {
            const double fa = flow_[size_t(a)].fastest, fb = flow_[size_t(b)].fastest;
            return fa != fb ? fa < fb : a < b;
        });
        size_t slowest = 0; // the first flow without a rate, by its own limit
        for (;;) {
            while (slowest < flows_.size() && flow_[size_t(flows_[slowest])].set)
                slowest++;
            if (slowest == flows_.size())
                break;
            const double limit = flow_[size_t(flows_[slowest])].fastest;
            if (shares.empty() || limit <= shares.top().first) {
                set(flows_[slowest], limit, now);
                continue;
            }
            const size_t l = shares.top().second;
            const double share = shares.top().first;
            shares.pop();
            Link &link = link_[l];
            if (link.open == 0)
                continue;
            const double current = std::max(link.left, 0.0) / link.open;
            if (current > share) { // others have got less than their part of it since
                shares.push({current, l});
                continue;
            }
            for (size_t i = 0; i < link.flows.size(); i++)
                if (!flow_[size_t(link.flows[i])].set)
                    set(link.flows[i], share, now);
        }
    }

    // Links and flows that are connected with a touched link, with nothing given away.
    void collect() {
        round_++;
        links_.clear();
        flows_.clear();
        for (size_t l : touched_)
            see(l);
        for (size_t done = 0; done < links_.size(); done++)
            for (int32_t x : link_[links_[done]].flows) {
                Flow &flow = flow_[size_t(x)];
                if (flow.seen == round_)
                    continue;
                flow.seen = round_;
                flow.set = false;
                flows_.push_back(x);
                each(x, [&](size_t l) {
                    see(l);
                    link_[l].open++;
                });
            }
    }

    void see(size_t l) {
        Link &link = link_[l];
        if (link.seen == round_)
            return;
        link.seen = round_;
        link.left = link.capacity;
        link.open = 0;
        links_.push_back(l);
    }

    void set(int32_t x, double rate, double now) {
        Flow &flow = flow_[size_t(x)];
        flow.set = true;
        each(x, [&](size_t l) {
            link_[l].left -= rate;
            link_[l].open--;
        });
        if (rate == flow.rate)
            return;
        flow.left = std::max(flow.left - flow.rate * (now - flow.since), 0.0);
        flow.since = now;
        flow.rate = rate;
        agenda_.end(now + flow.left / rate, x, ++flow.version);
    }

    const Routes routes_;
    const popmodel::LongVector<int32_t> &node_; // of each process
    const int32_t nodes_;
    const Transfers &transfers_;
    popmodel::LongVector<Link> link_;
    popmodel::LongVector<Flow> flow_; // of each transfer
    Agenda agenda_;
    popmodel::LongVector<size_t> touched_, links_;
    popmodel::LongVector<int32_t> flows_;
    uint32_t round_ = 0;
    popmodel::LongVector<int32_t> over_;
};

} // namespace popmodel::contended
