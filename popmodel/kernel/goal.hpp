// Schedules in GOAL: operations of every rank and what each needs, as a sequence per processor.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "actions.hpp"
#include "text_lines.hpp"

namespace popmodel::untimed {

enum What : std::uint8_t { kCalc, kSends, kReceives };

struct GoalOperation {
    std::int64_t amount;  // ns or bytes
    std::int64_t tag;
    std::int32_t partner;
    std::int16_t cpu;
    What what;
};

struct Need {
    std::int32_t later, earlier;
    bool complete;  // else it is enough that the earlier one has begun
};

// Labels of a rank; those that count up lie side by side.
class Labels {
  public:
    std::int32_t find(std::string_view label) const;  // -1: none
    bool add(std::string_view label, std::int32_t operation);
    std::string of(std::int32_t operation) const;

  private:
    struct Slot {
        std::uint64_t text = 0;
        std::uint32_t length = 0;
        std::int32_t operation = -1;
    };
    std::size_t slot_of(std::string_view label) const;
    std::vector<Slot> slots_;
    std::string text_;
    std::size_t used_ = 0;
};

struct GoalRank {
    std::vector<GoalOperation> operations;
    std::vector<Need> needs;          // by the later operation once the rank is complete,
    std::vector<std::int64_t> first;  // whose needs begin here
    std::vector<std::int32_t> order;  // in which the operations are done
    std::vector<std::int16_t> cpus;   // ascending; 0 is always among them
};

class GoalScanner {
  public:
    void feed(const char *text, std::size_t size);
    // The text has ended: the actions of all processors, rank after rank.
    void finish();

    std::vector<Actions> processes;
    std::vector<std::int64_t> rank_of;  // of each process
    std::int64_t held = 0;  // operations that begin later than the schedule asks for

  private:
    void line(std::string_view text);
    std::string_view without_remarks(std::string_view text);
    void outside(std::string_view text);
    void inside(std::string_view text);
    bool operation(std::string_view text);
    bool need(std::string_view text);
    void add(std::string_view label, const GoalOperation &operation);
    void close();
    std::vector<std::vector<std::int32_t>> partners() const;

    scan::TextLines lines_;
    std::string kept_;  // a line without its remarks
    bool remark_ = false;
    std::int64_t count_ = 0;
    std::int64_t inside_ = -1;
    std::unique_ptr<Labels> labels_;
    std::map<std::int64_t, std::unique_ptr<GoalRank>> given_;
    GoalRank *rank_ = nullptr;  // the one of `inside_`
    std::vector<std::unique_ptr<GoalRank>> ranks_;
    std::vector<std::int64_t> first_process_;
};

}  // namespace popmodel::untimed
