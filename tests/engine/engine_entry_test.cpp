#include "engine/engine_entry.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <new>
#include <stdexcept>

#include "base/error.h"

namespace stretto::engine {
namespace {

/// What a command that throws comes out of the door with.
template <class Exception>
Exception thrown_by(const std::function<int()>& command) {
  try {
    with_memory_advice("halve it", command);
  } catch (const Exception& error) {
    return error;
  }
  throw std::runtime_error("nothing was thrown");
}

TEST(EngineEntry, ACommandThatEndsWellGivesItsExitCode) {
  EXPECT_EQ(with_memory_advice("halve it", [] { return 1; }), 1);
}

// In the words of every library, not only of those that say "out of memory".
TEST(EngineEntry, LackOfMemoryBecomesAnErrorWithAdvice) {
  for (const char* words :
       {"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "[enforce fail at alloc_cpu.cpp:73] data. DefaultCPUAllocator: not enough memory: you "
        "tried to allocate 8388608000000 bytes.",
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 64 bytes",
        "CUDA out of memory. Tried to allocate 20.00 MiB."}) {
    const auto error = thrown_by<Error>([&] {
      TORCH_CHECK(false, words);
      return 0;
    });
    EXPECT_EQ(error.code(), ExitCode::kOutOfMemory);
    EXPECT_EQ(error.what(), "out of memory: " + std::string(words));
    EXPECT_EQ(error.advice(), "halve it");
  }
  const auto plain = thrown_by<Error>([]() -> int { throw std::bad_alloc(); });
  EXPECT_EQ(plain.code(), ExitCode::kOutOfMemory);
  EXPECT_STREQ(plain.what(), "out of memory");
}

TEST(EngineEntry, EverythingElsePassesAsItIs) {
  const auto own = thrown_by<Error>(
      []() -> int { throw Error(ExitCode::kBadData, "out of memory, says the file", "mend it"); });
  EXPECT_EQ(own.code(), ExitCode::kBadData);
  EXPECT_EQ(own.advice(), "mend it");
  EXPECT_STREQ(thrown_by<std::logic_error>([]() -> int { throw std::logic_error("no"); }).what(),
               "no");
  const auto shape = thrown_by<c10::Error>([] {
    TORCH_CHECK(false, "unsupported memory format");
    return 0;
  });
  EXPECT_STREQ(shape.what_without_backtrace(), "unsupported memory format");
}

}  // namespace
}  // namespace stretto::engine
