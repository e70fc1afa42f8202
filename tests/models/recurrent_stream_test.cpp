#include "models/decoders/recurrent_stream.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/models/recurrent_pairings.h"

namespace stretto::models {
namespace {

using namespace testing::recurrent;

/// A source, when it enters and when it is done.
struct Visit {
  std::vector<int64_t> ids;
  int64_t enters, ends;
};

/// Between the fifth and the sixth nobody is there.
const std::vector<Visit>& visits() {
  static const std::vector<Visit> all{{{5, 9, 14, 7, 3}, 0, 4}, {{3}, 0, 6},
                                      {{20, 11, 6, 3}, 2, 5},   {{4, 4, 15, 3}, 3, 7},
                                      {{16, 3}, 3, 6},          {{8, 3}, 9, 12}};
  return all;
}

/// A visit that goes on, in a stream and by itself with two lanes.
struct Guest {
  size_t number;
  int64_t step = 0;
  std::unique_ptr<StepDecoder> alone = nullptr;

  int64_t lanes() const { return step == 0 ? 1 : 2; }
  int64_t token(int64_t lane) const {
    return (static_cast<int64_t>(number) * 5 + 7 * lane + 3 * step) % kWords;
  }
  std::vector<int64_t> parents() const {
    return step % 2 == 0 ? std::vector<int64_t>{0, 0} : std::vector<int64_t>{1, 0};
  }
};

Encoded encoded_sources(const Joined& joined, const std::vector<std::vector<int64_t>>& sources) {
  data::PackedTokens src;
  for (const auto& ids : sources) add(src, ids);
  return joined.encoder->forward(pack(src, nullptr, at::kCPU), {});
}

void let_enter(const Joined& joined, int64_t time, StreamDecoder& stream,
               std::vector<Guest>& guests) {
  std::vector<std::vector<int64_t>> entering;
  for (size_t i = 0; i < visits().size(); ++i) {
    if (visits()[i].enters != time) continue;
    entering.push_back(visits()[i].ids);
    Guest guest{.number = i};
    guest.alone = joined.decoder->start(encoded_sources(joined, {visits()[i].ids}), 2);
    guests.push_back(std::move(guest));
  }
  if (!entering.empty()) stream.enter(encoded_sources(joined, entering));
}

void expect_rows_of_each_alone(const Joined& joined) {
  const auto stream = joined.decoder->start_stream();
  ASSERT_NE(stream, nullptr);
  std::vector<Guest> guests;
  for (int64_t time = 0; time < 12; ++time) {
    let_enter(joined, time, *stream, guests);
    if (guests.empty()) continue;
    std::vector<int64_t> tokens;
    for (const Guest& guest : guests) {
      for (int64_t lane = 0; lane < guest.lanes(); ++lane) tokens.push_back(guest.token(lane));
    }
    const at::Tensor rows = stream->step(at::tensor(tokens, at::kLong));
    std::vector<int64_t> parents;
    std::vector<Guest> staying;
    int64_t first = 0;
    for (Guest& guest : guests) {
      const int64_t lanes = guest.lanes(), other = lanes == 1 ? 0 : 1;
      const at::Tensor own = guest.alone->step(
          at::tensor(std::vector<int64_t>{guest.token(0), guest.token(other)}, at::kLong));
      EXPECT_TRUE(at::allclose(rows.narrow(0, first, lanes), own.narrow(0, 0, lanes), 1e-5, 1e-6))
          << "source " << guest.number << ", time " << time;
      if (time + 1 < visits()[guest.number].ends) {
        for (const int64_t lane : guest.parents()) parents.push_back(first + lane * other);
        guest.alone->reorder(guest.parents());
        ++guest.step;
        staying.push_back(std::move(guest));
      }
      first += lanes;
    }
    guests = std::move(staying);
    stream->reorder(parents);
  }
}

TEST(RecurrentStream, LanesThatComeAndGoHaveTheRowsOfEachSourceAlone) {
  const torch::NoGradGuard no_grad;
  for (const Pairing& made : pairings()) {
    for (const auto dtype : {at::kDouble, at::kFloat}) {
      SCOPED_TRACE(made.text);
      Joined joined(made, dtype);
      joined.eval();
      expect_rows_of_each_alone(joined);
    }
  }
}

TEST(RecurrentStream, RefusesLanesThatThereAreNotAndOtherOrders) {
  const torch::NoGradGuard no_grad;
  const Joined joined(gnmt(), at::kFloat);
  const auto stream = joined.decoder->start_stream();
  stream->enter(encoded_sources(joined, {{5, 3}, {7, 9, 3}}));
  EXPECT_THROW(stream->step(at::full({3}, 5, at::kLong)), c10::Error);
  stream->step(at::full({2}, 5, at::kLong));
  EXPECT_THROW(stream->reorder({2}), c10::Error);
  EXPECT_THROW(stream->reorder({1, 0}), c10::Error);
}

}  // namespace
}  // namespace stretto::models
