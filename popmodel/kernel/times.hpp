// What the engine takes for a time: one number, several at once for as many networks, or one with
// its slope and the way that led to it. Durations are added to times; the later of two is taken.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "scratch.hpp"

namespace popmodel {

constexpr double UNKNOWN = -1.0; // times are never negative
// Where slopes decide between equal times: sums of the same durations in another order are equal
// but for rounding.
constexpr double ROUNDING = 1e-13;

// One network.
inline bool known(double t) { return t != UNKNOWN; }
inline bool after(double a, double b) { return a > b; }
inline double later(double a, double b) { return a < b ? b : a; }
inline double unknown(double) { return UNKNOWN; }
inline double time_of(double t) { return t; }

// Several networks side by side; each lane does what it would do alone.
template <size_t N> struct Lanes {
    double v[N];

    Lanes &operator+=(const Lanes &x) {
        for (size_t k = 0; k < N; k++)
            v[k] += x.v[k];
        return *this;
    }
    friend Lanes operator+(Lanes a, const Lanes &b) { return a += b; }
    friend Lanes operator*(double a, Lanes b) {
        for (size_t k = 0; k < N; k++)
            b.v[k] = a * b.v[k];
        return b;
    }
};

template <size_t N> bool known(const Lanes<N> &t) { return t.v[0] != UNKNOWN; }
template <size_t N> Lanes<N> later(Lanes<N> a, const Lanes<N> &b) {
    for (size_t k = 0; k < N; k++)
        a.v[k] = a.v[k] < b.v[k] ? b.v[k] : a.v[k];
    return a;
}
template <size_t N> Lanes<N> unknown(const Lanes<N> &) {
    Lanes<N> t{};
    t.v[0] = UNKNOWN;
    return t;
}

// Several networks side by side, each with the derivative in one direction of its parameters. Of two
// equal times the one that grows faster is later: that is so a little further in that direction.
template <size_t N> struct Slopes {
    Lanes<N> t, dt;

    Slopes &operator+=(const Slopes &x) {
        t += x.t;
        dt += x.dt;
        return *this;
    }
    friend Slopes operator+(Slopes a, const Slopes &b) { return a += b; }
    friend Slopes operator*(double a, Slopes b) { return {a * b.t, a * b.dt}; }

    bool after(const Slopes &x, size_t k) const {
        const double rounding = ROUNDING * x.t.v[k];
        return t.v[k] > x.t.v[k] + rounding ||
               (t.v[k] >= x.t.v[k] - rounding && dt.v[k] > x.dt.v[k]);
    }
};

template <size_t N> bool known(const Slopes<N> &t) { return known(t.t); }
template <size_t N> Slopes<N> later(Slopes<N> a, const Slopes<N> &b) {
    for (size_t k = 0; k < N; k++)
        a.dt.v[k] = b.after(a, k) ? b.dt.v[k] : a.dt.v[k];
    a.t = later(a.t, b.t);
    return a;
}
template <size_t N> Slopes<N> unknown(const Slopes<N> &t) { return {unknown(t.t), {}}; }

// A duration and its derivative in one direction of the network's parameters.
struct Slope {
    double t, dt;
};

inline Slope operator*(double a, const Slope &b) { return {a * b.t, a * b.dt}; }

// A time with its derivative, and the entry of the trail that leads to it. Of two equal times the
// one that grows faster is later: that is so a little further in that direction.
struct Traced {
    double t = 0, dt = 0;
    int32_t entry = -1;

    Traced &operator+=(const Slope &x) {
        t += x.t;
        dt += x.dt;
        return *this;
    }
    friend Traced operator+(Traced a, const Slope &b) { return a += b; }
};

inline bool known(const Traced &t) { return t.t != UNKNOWN; }
inline double time_of(const Traced &t) { return t.t; }
inline bool after(const Traced &a, const Traced &b) {
    const double rounding = ROUNDING * b.t;
    return a.t > b.t + rounding || (a.t >= b.t - rounding && a.dt > b.dt);
}
// The time is the larger one to the last bit, as without a trail.
inline Traced later(const Traced &a, const Traced &b) {
    Traced found = after(b, a) ? b : a;
    found.t = later(a.t, b.t);
    return found;
}
inline Traced unknown(const Traced &) { return {UNKNOWN, 0, -1}; }

template <typename Time> struct DurationOf { using type = Time; };
template <> struct DurationOf<Traced> { using type = Slope; };
template <typename Time> using Duration = typename DurationOf<Time>::type;

// What another process brought that a process waited for.
enum class Join : uint8_t {
    START,      // nothing: where a process begins
    RECEIVED,   // a message
    SENT,       // the receiver, to a sender that waits for it
    COLLECTIVE  // the last or the root of a collective
};

// An entry wherever a process goes on at a time that another one, or itself earlier, decided.
struct Entry {
    int64_t operation; // of the process, in which it waited
    int32_t parent;    // the last entry of the one that decided, when it did so
    int32_t process;
    int32_t step;      // of a collective carried out as messages; else 0
    Join join;
    bool posted;       // decided by posting a receive, not by sending
};

using Trail = popmodel::LongVector<Entry>;

} // namespace popmodel
