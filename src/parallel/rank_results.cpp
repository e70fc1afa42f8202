#include "parallel/rank_results.h"

#include <algorithm>
#include <type_traits>

#include "distributed/numbers.h"

namespace stretto::parallel {
namespace {

constexpr size_t kHead = 6;  // numbers of a rank's result before those of its micro-batches

// Every number of a rank's result, in the order in which they are sent.
template <class AnyRankResult, class Visit>
void for_numbers(AnyRankResult& result, const Visit& visit) {
  visit(result.failed_part);
  visit(result.can_split);
  visit(result.late);
  visit(result.stop);
  visit(result.small.weight);
  visit(result.small.sum_norm_sq);
  for (auto& micro : result.micros) {
    for (auto& sum : micro) visit(sum);
  }
}

void encode(const RankResult& result, std::span<double> row) {
  size_t next = 0;
  for_numbers(result, [&](auto number) { row[next++] = static_cast<double>(number); });
}

RankResult decode(std::span<const double> row, size_t turns, size_t num_sums) {
  RankResult result;
  result.num_sums = num_sums;
  result.micros.assign(turns, MicroSums(num_sums));
  size_t next = 0;
  for_numbers(result, [&](auto& number) {
    number = static_cast<std::remove_reference_t<decltype(number)>>(row[next++]);
  });
  return result;
}

data::RankBatches of_rank(data::RankBatches share, int64_t rank) {
  share.rank = rank;
  return share;
}

}  // namespace

void add_sums(MicroSums& to, const MicroSums& from) {
  for (size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

RankResults RankResults::exchange(const distributed::ProcessGroup& group,
                                  const data::RankBatches& share, int64_t count,
                                  const RankResult& mine) {
  const auto size = static_cast<size_t>(share.size);
  // As wide for all as for rank 0, which has the most.
  const size_t width =
      kHead + mine.num_sums * static_cast<size_t>(of_rank(share, 0).of_update(count));
  std::vector<double> table(width * size);
  const auto row = [&](size_t rank) { return std::span(table).subspan(rank * width, width); };
  encode(mine, row(static_cast<size_t>(share.rank)));
  distributed::gather_numbers(group, table);
  RankResults all(share, count);
  for (size_t rank = 0; rank < size; ++rank) {
    const int64_t turns = of_rank(share, static_cast<int64_t>(rank)).of_update(count);
    all.by_rank_.push_back(decode(row(rank), static_cast<size_t>(turns), mine.num_sums));
  }
  return all;
}

bool RankResults::any_failed() const {
  return std::ranges::any_of(by_rank_, [](const RankResult& one) { return one.failed_part >= 0; });
}

bool RankResults::is_hopeless() const {
  return std::ranges::any_of(
      by_rank_, [](const RankResult& one) { return one.failed_part >= 0 && !one.can_split; });
}

std::optional<int64_t> RankResults::late_rank() const {
  const auto found = std::ranges::find_if(by_rank_, &RankResult::late);
  if (found == by_rank_.end()) return std::nullopt;
  return found - by_rank_.begin();
}

int RankResults::stop() const {
  return std::ranges::max_element(by_rank_, {}, &RankResult::stop)->stop;
}

std::vector<MicroSums> RankResults::in_order() const {
  std::vector<MicroSums> micros(static_cast<size_t>(count_), MicroSums(by_rank_.front().num_sums));
  for (size_t rank = 0; rank < by_rank_.size(); ++rank) {
    const data::RankBatches share = of_rank(share_, static_cast<int64_t>(rank));
    for (size_t turn = 0; turn < by_rank_[rank].micros.size(); ++turn) {
      const auto slice = share.slice(static_cast<int64_t>(turn), count_);
      add_sums(micros[static_cast<size_t>(slice.micro)], by_rank_[rank].micros[turn]);
    }
  }
  return micros;
}

}  // namespace stretto::parallel
