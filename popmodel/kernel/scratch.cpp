#include "scratch.hpp"

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace popmodel::scratch {
namespace {

struct Block {
    std::size_t bytes;
    bool in_file;
};

// Never destroyed: arrays may be given back when the process ends.
struct State {
    std::mutex mutex;
    std::string folder;
    std::size_t budget = 0, held = 0, lacking = 0;
    int reason = 0;
    std::unordered_map<void *, Block> blocks;
    std::vector<std::pair<void *, std::size_t>> spare;  // blocks in files that wait for reuse
    std::size_t spare_bytes = 0;
};
State &state() {
    static State *const state = new State;
    return *state;
}

#if defined(__unix__) || defined(__APPLE__)
constexpr std::uintptr_t kPage = 4096;  // pages are no smaller anywhere
// Bytes in files that wait for reuse: new pages of files cost more than those of memory.
constexpr std::size_t kMostSpare = std::size_t{1} << 29;

// The smallest spare block of at least so many bytes that is not much larger; its bytes, 0: none.
std::size_t reuse(State &all, std::size_t bytes, void *&block) {
    std::size_t best = all.spare.size();
    for (std::size_t at = 0; at < all.spare.size(); ++at)
        if (all.spare[at].second >= bytes && all.spare[at].second <= bytes + bytes / 2 &&
            (best == all.spare.size() || all.spare[at].second < all.spare[best].second))
            best = at;
    if (best == all.spare.size()) return 0;
    const std::size_t found = all.spare[best].second;
    block = all.spare[best].first;
    all.spare.erase(all.spare.begin() + static_cast<std::ptrdiff_t>(best));
    all.spare_bytes -= found;
    return found;
}

void drop_spare(State &all, std::size_t most) {
    while (all.spare_bytes > most) {  // the oldest first
        munmap(all.spare.front().first, all.spare.front().second);
        all.spare_bytes -= all.spare.front().second;
        all.spare.erase(all.spare.begin());
    }
}

// A file without a name, of some bytes that the folder has for sure; -1 and errno if not.
int open_file(const std::string &folder, std::size_t bytes) {
    int file = -1;
#ifdef O_TMPFILE
    file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
#endif
    if (file < 0) {
        std::string name = folder + "/popmodel-XXXXXX";
        file = mkstemp(name.data());
        if (file < 0) return -1;
        unlink(name.c_str());
        fcntl(file, F_SETFD, FD_CLOEXEC);
    }
    // A file with holes would end the process by a signal where the disk is full.
#ifdef __linux__
    const int failed = posix_fallocate(file, 0, static_cast<off_t>(bytes));
#else
    const int failed = ftruncate(file, static_cast<off_t>(bytes)) ? errno : 0;
#endif
    if (failed) {
        close(file);
        errno = failed;
        return -1;
    }
    return file;
}

void *take_pages(std::size_t bytes, bool zeros) {
    State &all = state();
    const std::lock_guard<std::mutex> guard(all.mutex);
    const bool in_file = !all.folder.empty() && all.held + bytes > all.budget;
    void *block = MAP_FAILED;
    if (const std::size_t found = in_file ? reuse(all, bytes, block) : 0) {
        if (zeros) std::memset(block, 0, bytes);
        bytes = found;
    } else if (in_file) {
        int file = open_file(all.folder, bytes);
        if (file < 0 && all.spare_bytes) {
            drop_spare(all, 0);
            file = open_file(all.folder, bytes);
        }
        if (file >= 0) {
            block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
            close(file);
        }
        if (block == MAP_FAILED) {
            all.lacking = bytes;
            all.reason = errno;
        }
    } else {
        block = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
#ifdef MADV_HUGEPAGE
        if (block != MAP_FAILED) madvise(block, bytes, MADV_HUGEPAGE);
#endif
    }
    if (block == MAP_FAILED) return nullptr;
    all.blocks.emplace(block, Block{bytes, in_file});
    if (!in_file) all.held += bytes;
    return block;
}

// The block at an address; without bytes where it is a small one.
Block large_block(void *block, bool forget) {
    if (reinterpret_cast<std::uintptr_t>(block) % kPage) return {0, false};
    State &all = state();
    const std::lock_guard<std::mutex> guard(all.mutex);
    const auto found = all.blocks.find(block);
    if (found == all.blocks.end()) return {0, false};
    const Block known = found->second;
    if (!forget) return known;
    all.blocks.erase(found);
    if (known.in_file && !all.folder.empty()) {
        all.spare.emplace_back(block, known.bytes);
        all.spare_bytes += known.bytes;
        drop_spare(all, kMostSpare);
    } else {
        if (!known.in_file) all.held -= known.bytes;
        munmap(block, known.bytes);
    }
    return known;
}
#endif

}  // namespace

void use(const std::string &folder, std::size_t budget) {
    State &all = state();
    const std::lock_guard<std::mutex> guard(all.mutex);
    all.folder = folder;
    all.budget = budget;
    all.lacking = 0;
#if defined(__unix__) || defined(__APPLE__)
    if (folder.empty()) drop_spare(all, 0);
#endif
}

std::size_t lacking(int &reason) {
    State &all = state();
    const std::lock_guard<std::mutex> guard(all.mutex);
    reason = all.reason;
    return all.lacking;
}

#if defined(__unix__) || defined(__APPLE__)

void *take(std::size_t bytes) {
    return bytes < kLarge ? std::malloc(bytes ? bytes : 1) : take_pages(bytes, false);
}

void *take_zeros(std::size_t bytes) {
    return bytes < kLarge ? std::calloc(bytes ? bytes : 1, 1) : take_pages(bytes, true);
}

void give(void *block) {
    if (!block) return;
    if (!large_block(block, true).bytes) std::free(block);
}

void *resize(void *block, std::size_t bytes) {
    if (!block) return take(bytes);
    const Block known = large_block(block, false);
    if (!known.bytes) return std::realloc(block, bytes ? bytes : 1);
    void *const moved = take(bytes);
    if (!moved) return nullptr;
    std::memcpy(moved, block, bytes < known.bytes ? bytes : known.bytes);
    give(block);
    return moved;
}

#else

void *take(std::size_t bytes) { return std::malloc(bytes ? bytes : 1); }
void *take_zeros(std::size_t bytes) { return std::calloc(bytes ? bytes : 1, 1); }
void give(void *block) { std::free(block); }
void *resize(void *block, std::size_t bytes) { return std::realloc(block, bytes ? bytes : 1); }

#endif

}  // namespace popmodel::scratch
