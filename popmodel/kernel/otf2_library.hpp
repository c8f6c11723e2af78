// OTF2's C library, which is opened while popmodel runs: its functions are called by their names.
#pragma once

#include <dlfcn.h>

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <stdexcept>
#include <string>

namespace popmodel::otf2 {

struct Failure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

inline thread_local std::string last_error; // what the library would have printed

inline int keep_error(void *, const char *, uint64_t, const char *, int code, const char *format,
               va_list arguments) {
    char text[512] = "";
    std::vsnprintf(text, sizeof text, format, arguments);
    last_error = text;
    return code;
}

// The library. Functions that answer with a code say 0 for success.
class Library {
  public:
    explicit Library(const std::string &path)
        : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        if (handle_ == nullptr)
            throw Failure(dlerror());
        using Callback = int (*)(void *, const char *, uint64_t, const char *, int, const char *,
                                 va_list);
        call<Callback>("OTF2_Error_RegisterCallback", &keep_error, nullptr);
    }

    bool has(const char *name) const { return dlsym(handle_, name) != nullptr; }

    template <typename Result, typename... Arguments>
    Result call(const char *name, Arguments... arguments) const {
        return function<Result, Arguments...>(name)(arguments...);
    }

    template <typename Result, typename... Arguments> auto function(const char *name) const {
        void *found = dlsym(handle_, name);
        if (found == nullptr)
            throw Failure(std::string("has no function ") + name);
        return reinterpret_cast<Result (*)(Arguments...)>(found);
    }

    // Call what answers with a code.
    template <typename... Arguments> void must(const char *name, Arguments... arguments) const {
        last_error.clear();
        if (const int code = call<int>(name, arguments...))
            throw Failure(reason(code));
    }

    std::string reason(int code) const {
        const char *text = call<const char *>("OTF2_Error_GetDescription", code);
        std::string said = text ? text : "error " + std::to_string(code);
        if (!last_error.empty() && last_error != said)
            said += ": " + last_error;
        return said;
    }

  private:
    void *handle_; // never closed: threads of Python may use the library as well
};

constexpr int GO_ON = 0, STOP = 1; // what callbacks answer

} // namespace popmodel::otf2
