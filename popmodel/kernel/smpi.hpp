// Time-independent traces of SimGrid SMPI: actions of processes, one on each line.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "actions.hpp"
#include "text_lines.hpp"

namespace popmodel::untimed {

// Counts the processes of a trace, which some collectives need before all lines are read.
class SmpiRanks {
  public:
    void feed(const char *text, std::size_t size);
    void finish();
    std::int64_t count = 0;  // one more than the largest rank

  private:
    void line(std::string_view text);
    scan::TextLines lines_;
};

class SmpiScanner {
  public:
    // Flop per second of a process, processes, and ns that a test takes.
    SmpiScanner(double rate, std::int64_t count, double sleep)
        : count_(count), ns_per_flop_(1e9 / rate), sleep_(sleep) {}
    void feed(const char *text, std::size_t size);
    void end_file();  // a file has ended; lines are counted anew
    void finish();    // all have ended

    std::vector<Actions> processes;
    std::int64_t tests = 0, tests_of_many = 0, matched = 0;

  private:
    using Key = std::tuple<std::int32_t, std::int32_t, std::int64_t>;  // source, receiver and tag
    struct KeyHash {
        std::size_t operator()(const Key &key) const {
            std::uint64_t hash = static_cast<std::uint32_t>(std::get<0>(key));
            hash = (hash << 32) ^ static_cast<std::uint32_t>(std::get<1>(key));
            hash = (hash ^ static_cast<std::uint64_t>(std::get<2>(key)) * 0xD6E8FEB86659FD93u) *
                   0x9E3779B97F4A7C15u;
            return static_cast<std::size_t>(hash ^ hash >> 29);
        }
    };
    struct Fifo {
        std::vector<std::int32_t> requests;
        std::size_t done = 0;
        bool empty() const { return done == requests.size(); }
    };
    struct Process {
        Actions actions;
        std::int64_t unit;  // bytes of an element without a datatype
        std::unordered_map<Key, Fifo, KeyHash> open;  // requests
        std::int32_t opened(const Key &key) {
            const std::int32_t request = actions.request();
            open[key].requests.push_back(request);
            return request;
        }
    };

    void line(std::string_view text);
    void message(Process &mine);
    void exchange(Process &mine);
    void wait(Process &mine, const Key &key, const std::string &what);
    void collective(Process &mine, int which, bool starts);

    std::string_view word(std::size_t place) const;
    [[noreturn]] void wrong(std::size_t place, const char *what) const;
    double amount(std::size_t place) const;
    std::int64_t whole(std::size_t place) const;
    std::int64_t whole(std::size_t place, std::int64_t missing) const;
    std::int32_t partner(std::size_t place) const;
    std::int64_t tag(std::size_t place) const;
    std::int64_t bytes(double elements, std::size_t datatype) const;
    std::int64_t size(std::size_t count, std::size_t datatype) const;
    double sum(std::size_t first, std::size_t count) const;

    std::int64_t count_;
    double ns_per_flop_, sleep_;
    scan::TextLines lines_;
    std::unordered_map<std::int64_t, Process> of_;
    std::vector<std::string_view> words_;  // of the action, behind its name
    std::string action_;
    std::int64_t unit_ = 1;
};

}  // namespace popmodel::untimed
