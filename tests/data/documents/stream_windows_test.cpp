#include "data/documents/stream_windows.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/base/failure.h"
#include "tests/data/documents/numbered_documents.h"

namespace stretto::data {
namespace {

using stretto::testing::documents_of;
using Ids = std::vector<int64_t>;

struct ReadWindow {
  Ids inputs, next;
  int64_t scored = 0;
};

/// All windows by their numbers.
std::map<int64_t, ReadWindow> read_windows(const BatchSource& source) {
  std::map<int64_t, ReadWindow> windows;
  for (int64_t i = 0; i < source.num_batches(); ++i) {
    const Batch batch = source.load(0, i);
    for (int64_t k = 0; k < batch.num_sequences(); ++k) {
      const auto inputs = stream_inputs(batch).sequence(k), next = stream_next(batch).sequence(k);
      windows[batch.sample_ids[static_cast<size_t>(k)]] = {
          .inputs = {inputs.begin(), inputs.end()},
          .next = {next.begin(), next.end()},
          .scored = stream_scored(batch).sequence(k).front()};
    }
  }
  return windows;
}

std::map<int64_t, ReadWindow> stream_windows_of(const std::vector<int64_t>& lengths,
                                                WindowSetting setting) {
  setting.max_tokens = 16;
  const auto windows = std::make_shared<StreamWindows>(documents_of(lengths), setting);
  auto read = read_windows(*make_window_batches(windows, setting));
  EXPECT_EQ(std::ssize(read), windows->size());
  return read;
}

Ids scored_tokens_of(const std::map<int64_t, ReadWindow>& windows) {
  Ids all;
  for (const auto& [number, window] : windows) {
    all.insert(all.end(), window.next.end() - window.scored, window.next.end());
  }
  return all;
}

TEST(StreamWindows, ScoreEachTokenOnceWhateverLengthAndStride) {
  for (const int64_t tokens : {1, 5, 6, 7, 20}) {
    const auto documents = documents_of({tokens, 2, tokens});
    for (const int64_t length : {1, 2, 5, 7, 100}) {
      for (const int64_t stride : {int64_t{0}, int64_t{1}, (length + 1) / 2, length}) {
        for (const bool by_document : {false, true}) {
          const auto windows =
              stream_windows_of({tokens, 2, tokens},
                                {.length = length, .stride = stride, .by_document = by_document});
          EXPECT_EQ(scored_tokens_of(windows), documents->ids())
              << tokens << " " << length << " " << stride << " " << by_document;
        }
      }
    }
  }
}

TEST(StreamWindows, HaveContextInFrontOfWhatTheyScore) {
  const auto windows = stream_windows_of({9}, {.length = 4, .stride = 2});  // 1 … 9 0
  ASSERT_EQ(windows.size(), 4U);
  EXPECT_EQ(windows.at(0).next, (Ids{1, 2, 3, 4}));
  EXPECT_EQ(windows.at(0).inputs, (Ids{0, 1, 2, 3})) << "a separator in front of the text";
  EXPECT_EQ(windows.at(0).scored, 4);
  EXPECT_EQ(windows.at(1).next, (Ids{3, 4, 5, 6}));
  EXPECT_EQ(windows.at(1).inputs, (Ids{2, 3, 4, 5})) << "the token before it";
  EXPECT_EQ(windows.at(1).scored, 2);
  EXPECT_EQ(windows.at(3).next, (Ids{7, 8, 9, 0}));
  const auto odd = stream_windows_of({8}, {.length = 4, .stride = 2});
  EXPECT_EQ(odd.at(3).next, (Ids{7, 8, 0})) << "begins are a stride apart";
  EXPECT_EQ(odd.at(3).scored, 1);
}

TEST(StreamWindows, WithoutAStrideAreDisjointBlocks) {
  const auto windows = stream_windows_of({9}, {.length = 4});
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_EQ(windows.at(1).next, (Ids{5, 6, 7, 8}));
  EXPECT_EQ(windows.at(2).next, (Ids{9, 0}));
  EXPECT_EQ(windows.at(2).inputs, (Ids{8, 9}));
}

TEST(StreamWindows, OfDocumentsHaveTokensOfOneAlone) {
  const WindowSetting setting{.length = 3, .stride = 2, .by_document = true};
  const auto windows = stream_windows_of({4, 1}, setting);  // 1 2 3 4 0 | 5 0
  ASSERT_EQ(windows.size(), 3U);
  EXPECT_EQ(windows.at(0).next, (Ids{1, 2, 3}));
  EXPECT_EQ(windows.at(1).next, (Ids{3, 4, 0}));
  EXPECT_EQ(windows.at(2).next, (Ids{5, 0}));
  EXPECT_EQ(windows.at(2).inputs, (Ids{0, 5})) << "behind the separator of the one before";
  const StreamWindows numbers(documents_of({4, 1}), setting);
  EXPECT_EQ(numbers.first_of(0), 0);
  EXPECT_EQ(numbers.first_of(1), 2);
  EXPECT_EQ(numbers.first_of(2), 3);
  EXPECT_EQ(numbers.num_split(), 1);
}

TEST(StreamWindows, MayAllBeginAsTextsDo) {
  const auto windows = stream_windows_of({9}, {.length = 4, .begin = WindowBegin::kTextBegin});
  EXPECT_EQ(windows.at(1).inputs, (Ids{0, 5, 6, 7}));
  EXPECT_EQ(windows.at(1).next, (Ids{5, 6, 7, 8}));
}

TEST(StreamWindows, ATextMayHaveATokenOfItsOwnInFront) {
  const auto stream = stream_windows_of({5}, {.length = 4, .text_begin = 77});
  EXPECT_EQ(stream.at(0).inputs, (Ids{77, 1, 2, 3}));
  EXPECT_EQ(stream.at(1).inputs, (Ids{4, 5})) << "goes on with the text";
  const auto documents =
      stream_windows_of({5, 1}, {.length = 4, .by_document = true, .text_begin = 77});
  EXPECT_EQ(documents.at(0).inputs, (Ids{77, 1, 2, 3}));
  EXPECT_EQ(documents.at(1).inputs, (Ids{4, 5}));
  EXPECT_EQ(documents.at(2).inputs, (Ids{77, 6}));
  EXPECT_EQ(documents.at(2).next, (Ids{6, 0}));
  const auto all =
      stream_windows_of({5}, {.length = 4, .begin = WindowBegin::kTextBegin, .text_begin = 77});
  EXPECT_EQ(all.at(1).inputs, (Ids{77, 5}));
}

TEST(StreamWindows, AreBatchesOfAboutEqualLengthsUnderTheirBounds) {
  const WindowSetting setting{.length = 4, .by_document = true, .max_tokens = 8};
  const auto source = make_window_batches(
      std::make_shared<StreamWindows>(documents_of({7, 1, 3, 1}), setting), setting);
  ASSERT_EQ(source->num_batches(), 2);  // 2 2 4 | 4 4
  EXPECT_EQ(source->sample_ids(0, 0), (Ids{2, 4, 0}));
  EXPECT_EQ(source->order(), Order::kAny);
  const auto one = make_window_batches(std::make_shared<StreamWindows>(documents_of({7}), setting),
                                       {.length = 4, .by_document = true, .max_tokens = 2});
  EXPECT_EQ(one->num_batches(), 2) << "a longer one is a batch by itself";
}

TEST(StreamWindows, AreShuffledByEpochAndSeedAlone) {
  const WindowSetting setting{
      .length = 4, .by_document = true, .max_tokens = 8, .shuffle = Shuffle::kEachEpoch, .seed = 3};
  const auto windows = std::make_shared<StreamWindows>(documents_of({99, 50, 3, 80}), setting);
  const auto one = make_window_batches(windows, setting),
             other = make_window_batches(windows, setting);
  std::set<Ids> orders;
  for (const int64_t epoch : {0, 1, 2}) {
    Ids order;
    for (int64_t i = 0; i < one->num_batches(); ++i) {
      const auto ids = one->load(epoch, i).sample_ids;
      EXPECT_EQ(other->sample_ids(epoch, i), ids);
      order.insert(order.end(), ids.begin(), ids.end());
    }
    EXPECT_EQ(std::ssize(std::set<int64_t>(order.begin(), order.end())), windows->size());
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 3U);
}

TEST(StreamWindows, RefuseWhatWouldLeaveTokensOut) {
  const auto documents = documents_of({9});
  EXPECT_THROW(StreamWindows(documents, {.length = 0}), std::invalid_argument);
  EXPECT_THROW(StreamWindows(documents, {.length = 4, .stride = 5}), std::invalid_argument);
  const StreamWindows windows(documents, {.length = 4});
  EXPECT_THROW(windows.first_of(0), std::logic_error);
  Batch batch = window_batch();
  EXPECT_THROW(windows.append(windows.size(), batch), std::out_of_range);
}

}  // namespace
}  // namespace stretto::data
