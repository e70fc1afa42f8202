// Every collective against a plain reference. Runs under `mpirun -np N dist_tests`, on all ranks at
// once: each test makes the same calls on every rank, whatever it finds.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>

#include "base/error.h"
#include "base/random.h"
#include "distributed/agreement.h"
#include "distributed/cores.h"
#include "distributed/half.h"
#include "distributed/make_group.h"
#include "distributed/plugin.h"

namespace stretto::distributed {
namespace {

ProcessGroup& world() {
  static ProcessGroup group;
  return group;
}

// Small whole numbers: sums are exact in fp32, and in the half types too.
float value(int rank, int64_t i) {
  return static_cast<float>(
      static_cast<int64_t>(mix64(static_cast<uint64_t>(i), static_cast<uint64_t>(rank)) % 17) - 8);
}

float sum_of_values(int64_t i) {
  float sum = 0;
  for (int rank = 0; rank < world().size(); ++rank) sum += value(rank, i);
  return sum;
}

// A number that no half type holds exactly.
float rough(int rank, int64_t i) {
  return std::sin(static_cast<float>(i * 7 + rank * 3 + 1));
}

/// Elements of one type, as floats at both ends.
class Elements {
 public:
  Elements(Element element, int64_t count)
      : element_(element),
        count_(count),
        bytes_(static_cast<size_t>(count) * size_of(element) + 1) {}

  Buffer buffer() { return {bytes_.data(), count_, element_}; }
  const std::vector<char>& bytes() const { return bytes_; }

  void set(int64_t i, float to) {
    switch (element_) {
      case Element::kF32:
        return put(i, to);
      case Element::kF64:
        return put(i, static_cast<double>(to));
      case Element::kBf16:
        return put(i, to_bf16(to));
      case Element::kF16:
        return put(i, to_f16(to));
      case Element::kI64:
        return put(i, static_cast<int64_t>(to));
      case Element::kByte:
        return put(i, static_cast<uint8_t>(static_cast<int>(to) & 15));
    }
  }
  float get(int64_t i) const {
    switch (element_) {
      case Element::kF32:
        return take<float>(i);
      case Element::kF64:
        return static_cast<float>(take<double>(i));
      case Element::kBf16:
        return from_bf16(take<uint16_t>(i));
      case Element::kF16:
        return from_f16(take<uint16_t>(i));
      case Element::kI64:
        return static_cast<float>(take<int64_t>(i));
      case Element::kByte:
        return take<uint8_t>(i);
    }
    return 0;
  }

 private:
  template <class T>
  void put(int64_t i, T v) {
    std::memcpy(bytes_.data() + static_cast<size_t>(i) * sizeof(T), &v, sizeof(T));
  }
  template <class T>
  T take(int64_t i) const {
    T v;
    std::memcpy(&v, bytes_.data() + static_cast<size_t>(i) * sizeof(T), sizeof(T));
    return v;
  }

  Element element_;
  int64_t count_;
  std::vector<char> bytes_;
};

constexpr Element kSummed[] = {Element::kF32, Element::kF64, Element::kBf16, Element::kF16,
                               Element::kI64};
constexpr Element kBytes[] = {Element::kByte}, kHalf[] = {Element::kBf16};
constexpr int64_t kCounts[] = {0, 1, 2, 3, 7, 1001, 65537};

Elements filled(Element element, int64_t count) {
  Elements data(element, count);
  for (int64_t i = 0; i < count; ++i) data.set(i, value(world().rank(), i));
  return data;
}

// Uneven parts, some of them empty: rank r has about r shares, the first and sometimes another
// none.
std::vector<int64_t> uneven(int64_t count, int size) {
  std::vector<int64_t> begins{0};
  const int64_t shares = std::max<int64_t>(1, int64_t{size} * (size - 1) / 2);
  for (int r = 0; r < size; ++r) begins.push_back(begins.back() + count * r / shares);
  begins.back() = count;
  return begins;
}

int mismatches(const Elements& data, int64_t from, int64_t to) {
  int wrong = 0;
  for (int64_t i = from; i < to; ++i) wrong += data.get(i) != sum_of_values(i);
  return wrong;
}

// Groups whose calls are cut into chunks of another size.
std::vector<ProcessGroup> groups() {
  static const std::vector<ProcessGroup> all = [] {
    std::vector<ProcessGroup> made{world()};
    for (const int64_t chunk : {1, 3, 1000}) {
      made.emplace_back(mpi_api().open(std::make_shared<PeerWatch>(), {.chunk_elements = chunk}));
    }
    made.emplace_back(
        mpi_api().open(std::make_shared<PeerWatch>(), {.sums = MpiSetup::Sums::kDirect}));
    return made;
  }();
  return all;
}

struct Case {
  ProcessGroup group;
  Element element;
  int64_t count;
  std::string name;
};

// Every group with every count, but for those that small chunks do not get through quickly.
std::vector<Case> cases(std::span<const Element> elements) {
  std::vector<Case> all;
  const auto every = groups();
  for (size_t g = 0; g < every.size(); ++g) {
    for (const Element element : elements) {
      for (const int64_t count : kCounts) {
        if ((g == 1 || g == 2) && count > 1001) continue;
        all.push_back({every[g], element, count,
                       "group " + std::to_string(g) + ", element type " +
                           std::to_string(static_cast<int>(element)) + ", " +
                           std::to_string(count) + " elements"});
      }
    }
  }
  return all;
}

TEST(Mpi, AllReduceSumsEveryTypeAndCount) {
  for (const auto& [group, element, count, name] : cases(kSummed)) {
    Elements data = filled(element, count);
    group.all_reduce(data.buffer());
    EXPECT_EQ(mismatches(data, 0, count), 0) << name;
  }
}

TEST(Mpi, ReduceSumsOnEachRoot) {
  for (const auto& [group, element, count, name] : cases(kSummed)) {
    for (int root = 0; root < world().size(); ++root) {
      Elements data = filled(element, count);
      group.reduce(data.buffer(), root);
      const int wrong = world().rank() == root ? mismatches(data, 0, count) : 0;
      EXPECT_EQ(wrong, 0) << name;
    }
  }
}

TEST(Mpi, BroadcastGivesTheRootsBytes) {
  for (const auto& [group, element, count, name] : cases(kBytes)) {
    for (int root = 0; root < world().size(); ++root) {
      Elements data = filled(element, count), expected(element, count);
      for (int64_t i = 0; i < count; ++i) expected.set(i, value(root, i));
      group.broadcast(data.buffer(), root);
      EXPECT_EQ(data.bytes(), expected.bytes()) << name;
    }
  }
}

TEST(Mpi, ReduceScatterSumsUnevenAndEmptyParts) {
  const auto rank = static_cast<size_t>(world().rank());
  for (const auto& [group, element, count, name] : cases(kSummed)) {
    const auto begins = uneven(count, world().size());
    Elements data = filled(element, count);
    group.reduce_scatter(data.buffer(), begins);
    EXPECT_EQ(mismatches(data, begins[rank], begins[rank + 1]), 0) << name;
  }
}

TEST(Mpi, ReduceScatterGoesBeyondWhatItHasInHand) {
  const int64_t count = 3 * (int64_t{1} << 20) + 77;
  const std::vector<int64_t> begins = uneven(count, world().size());
  Elements data = filled(Element::kF32, count);
  world().reduce_scatter(data.buffer(), begins);
  const auto rank = static_cast<size_t>(world().rank());
  EXPECT_EQ(mismatches(data, begins[rank], begins[rank + 1]), 0);
}

TEST(Mpi, AllGatherBringsUnevenAndEmptyParts) {
  const auto rank = static_cast<size_t>(world().rank());
  for (const auto& [group, element, count, name] : cases(kHalf)) {
    const auto begins = uneven(count, world().size());
    Elements data(element, count), expected(element, count);
    for (int64_t i = 0; i < count; ++i) {
      data.set(i, i >= begins[rank] && i < begins[rank + 1] ? value(5, i) : 99.0f);
      expected.set(i, value(5, i));
    }
    group.all_gather(data.buffer(), begins);
    EXPECT_EQ(data.bytes(), expected.bytes()) << name;
  }
}

TEST(Mpi, ExchangeDeliversEachPartInOrderOfRank) {
  const int size = world().size(), rank = world().rank();
  for (const auto& [group, element, count, name] : cases(kSummed)) {
    const auto begins = uneven(count, size);
    const int64_t first = begins[static_cast<size_t>(rank)];
    const int64_t mine = begins[static_cast<size_t>(rank) + 1] - first;
    Elements send = filled(element, count), receive(element, mine * size);
    group.exchange(send.buffer(), receive.buffer(), begins);
    int wrong = 0;
    for (int from = 0; from < size; ++from) {
      for (int64_t i = 0; i < mine; ++i) {
        wrong += receive.get(from * mine + i) != value(from, first + i);
      }
    }
    EXPECT_EQ(wrong, 0) << name;
  }
}

TEST(Mpi, AllGatherBytesKeepsAnyLength) {
  for (const auto& group : groups()) {
    for (const size_t length : {0, 1, 70, 900}) {
      const auto text = [&](int rank) {
        return std::string(length * static_cast<size_t>(rank), static_cast<char>('a' + rank));
      };
      const auto all = group.all_gather_bytes(text(group.rank()));
      ASSERT_EQ(all.size(), static_cast<size_t>(group.size()));
      for (int rank = 0; rank < group.size(); ++rank)
        EXPECT_EQ(all[static_cast<size_t>(rank)], text(rank));
    }
  }
}

TEST(Mpi, SumsHaveTheSameBitsOnEveryRank) {
  for (const ProcessGroup& group : {world(), groups().back()}) {
    for (const Element element : {Element::kF32, Element::kBf16, Element::kF16}) {
      for (const int64_t count : {1, 5, 1001, 300007}) {
        Elements data(element, count);
        for (int64_t i = 0; i < count; ++i) data.set(i, rough(world().rank(), i));
        group.all_reduce(data.buffer());
        const auto all = world().all_gather_bytes({data.bytes().begin(), data.bytes().end()});
        for (const auto& other : all) EXPECT_EQ(other, all[0]);
      }
    }
  }
}

// What tells the direct sum apart from the library's: its order is that of the ranks.
TEST(Mpi, DirectSumsAddInOrderOfRankOverManyChunks) {
  const int64_t count = 3 * (int64_t{1} << 20) + 77;
  Elements data(Element::kF32, count);
  for (int64_t i = 0; i < count; ++i) data.set(i, rough(world().rank(), i));
  groups().back().all_reduce(data.buffer());
  int64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) {
    float sum = rough(0, i);
    for (int rank = 1; rank < world().size(); ++rank) sum += rough(rank, i);
    wrong += data.get(i) != sum;
  }
  EXPECT_EQ(wrong, 0);
}

TEST(Mpi, HalfTypesAreSummedInFp32) {
  // Two addends that a half holds, whose sum it does not: rounded once.
  struct Row {
    Element element;
    float first, other;
  };
  for (const auto& row : {Row{Element::kBf16, 256, 3}, Row{Element::kF16, 2048, 3},
                          Row{Element::kF16, 60000, -15008}}) {
    Elements data(row.element, 9), rounded(row.element, 1);
    for (int64_t i = 0; i < 9; ++i) data.set(i, world().rank() == 0 ? row.first : row.other);
    world().all_reduce(data.buffer());
    const float exact = row.first + static_cast<float>(world().size() - 1) * row.other;
    rounded.set(0, exact);
    if (world().size() < 3) {
      EXPECT_EQ(data.get(8), rounded.get(0));
    } else {
      EXPECT_NEAR(data.get(8), exact, std::abs(row.first) / 128);
    }
  }
}

TEST(Mpi, TwoChannelsServeTwoThreadsAtOnce) {
  const ProcessGroup other = world().duplicate();
  const auto work = [](const ProcessGroup& group, int64_t count, int times) {
    int wrong = 0;
    for (int n = 0; n < times; ++n) {
      Elements data = filled(Element::kF32, count);
      group.all_reduce(data.buffer());
      wrong += mismatches(data, 0, count);
    }
    return wrong;
  };
  int wrong_there = -1;
  std::thread thread([&] { wrong_there = work(other, 50021, 30); });
  const int wrong_here = work(world(), 333, 200);
  thread.join();
  EXPECT_EQ(wrong_there, 0);
  EXPECT_EQ(wrong_here, 0);
}

TEST(Mpi, WrongOffsetsAreRefused) {
  std::vector<float> data(4);
  std::vector<int64_t> falling(static_cast<size_t>(world().size()) + 1, 0);
  falling.front() = 3;
  EXPECT_THROW(world().all_gather(buffer(std::span(data)), falling), std::invalid_argument);
  EXPECT_THROW(world().reduce_scatter(buffer(std::span(data)), std::vector<int64_t>{0}),
               std::invalid_argument);
}

TEST(Mpi, DifferentFactsAreRefusedOnEveryRank) {
  EXPECT_NO_THROW(require_agreement(world(), {{"data", "same"}}));
  if (world().size() == 1) return;
  const std::string mine = world().rank() == 1 ? "b" : "a";
  try {
    require_agreement(world(), {{"data", mine}});
    ADD_FAILURE() << "not noticed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kUsage);
    EXPECT_NE(std::string(error.what()).find("b on rank 1"), std::string::npos);
  }
}

TEST(Mpi, CoresAreDividedAmongTheProcessesOfAHost) {
  EXPECT_EQ(threads_for(world(), 3), 3);
  const int64_t alone = threads_for(ProcessGroup(), 0), shared = threads_for(world(), 0);
  EXPECT_GE(shared, 1);
  EXPECT_LE(shared, alone);
  EXPECT_EQ(shared, std::max<int64_t>(1, alone / world().size()));  // mpirun --bind-to none
}

int run_all(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  DistOptions options;
  options.backend = "mpi";
  world() = make_process_group(options, DeviceKind::kCpu);
  if (world().rank() != 0) {  // one report on the screen; failures of all ranks count
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    delete listeners.Release(listeners.default_result_printer());
  }
  std::vector<int64_t> failed{RUN_ALL_TESTS()};
  const int64_t here = failed[0];
  world().all_reduce(buffer(std::span(failed)));
  if (here != 0) std::fprintf(stderr, "rank %d: failed\n", world().rank());
  return failed[0] == 0 ? 0 : 1;
}

}  // namespace
}  // namespace stretto::distributed

int main(int argc, char** argv) {
  using namespace stretto;
  try {
    const int code = distributed::run_all(argc, argv);
    // All ranks agree on the code, so that nobody has to be told.
    return distributed::leave(0) == 0 ? code : 1;
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.message().c_str());
    return distributed::leave(static_cast<int>(error.code()), error.message());
  }
}
