#include "optim/lazy_adam.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace stretto::optim {
namespace {

std::vector<std::string> lazy_patterns(const OptimOptions& options, const Arena& arena) {
  if (options.lazy_tables.empty()) return {"*embedding.weight"};
  const auto names = names_of(arena);
  for (const auto& pattern : options.lazy_tables) {
    if (const auto problem = matches_nothing(pattern, names)) {
      throw Error(ExitCode::kUsage, "optim.lazy_tables: " + problem->what, problem->hint);
    }
  }
  return options.lazy_tables;
}

}  // namespace

LazyAdam::LazyAdam(const OptimOptions& options, const Arena& arena, Slice slice)
    : Adam(options, arena, slice) {
  const auto patterns = lazy_patterns(options, arena);
  for (const auto& slot : arena.slots()) {
    const bool named = std::any_of(patterns.begin(), patterns.end(), [&](const auto& pattern) {
      return matches(pattern, slot.name);
    });
    if (named && slot.shape.size() >= 2 && slot.numel > 0) add_table(slot);
  }
}

void LazyAdam::add_table(const Arena::Slot& slot) {
  const Slice slice = layout_.slice();
  Table table{.offset = slot.offset - slice.begin, .columns = slot.numel / slot.shape.front()};
  const auto row_of = [&](int64_t element) { return (element - slot.offset) / table.columns; };
  const Slice part = part_in(slot, slice);
  const int64_t begin = part.begin, end = part.end;
  if (begin < end) {
    table.first = row_of(begin);
    table.last = row_of(end - 1) + 1;
  }
  const auto here = static_cast<int64_t>(tables_.size());
  int64_t before = -1;  // a long row may be divided more than once
  for (int64_t cut = slot.offset / kernels::kStepBlock * kernels::kStepBlock;
       cut < slot.offset + slot.numel; cut += kernels::kStepBlock) {
    if (cut <= slot.offset || (cut - slot.offset) % table.columns == 0) continue;
    const int64_t row = row_of(cut);
    if (row == before) continue;
    before = row;
    const bool mine = row >= table.first && row < table.last;
    cut_rows_.push_back({.table = mine ? here : -1, .row = row});
  }
  for (const int64_t border : {begin, end}) {
    const bool inside = begin < end && border > slot.offset && border < slot.offset + slot.numel;
    TORCH_CHECK(
        !inside || (border - slot.offset) % table.columns == 0 || border % kernels::kStepBlock == 0,
        "[lazy_adam] a slice with a border at ", border, " divides a row of ", slot.name);
  }
  table.used.resize(static_cast<size_t>(table.last - table.first));
  if (begin < end) tables_.push_back(std::move(table));
}

void LazyAdam::find_used_rows(const torch::Tensor& grads, Table& table) const {
  // Whole rows at once; of one at either end there may be a part.
  const int64_t begin = std::max<int64_t>(0, table.offset + table.first * table.columns);
  const int64_t end = std::min(grads.numel(), table.offset + table.last * table.columns);
  const int64_t whole_first = (begin - table.offset + table.columns - 1) / table.columns;
  const int64_t whole_last = (end - table.offset) / table.columns;
  const auto part_is_used = [&](int64_t from, int64_t to) {
    return static_cast<uint8_t>(grads.narrow(0, from, to - from).ne(0).any().item<bool>());
  };
  const int64_t whole_begin = table.offset + whole_first * table.columns;
  const int64_t whole_end = table.offset + whole_last * table.columns;
  if (whole_first > whole_last) {  // the slice lies inside of one row
    table.used.front() = part_is_used(begin, end);
    return;
  }
  if (begin < whole_begin) table.used.front() = part_is_used(begin, whole_begin);
  if (whole_end < end) table.used.back() = part_is_used(whole_end, end);
  if (whole_first == whole_last) return;
  const torch::Tensor rows =
      grads.narrow(0, whole_begin, whole_end - whole_begin).view({-1, table.columns});
  const torch::Tensor used = rows.ne(0).any(1).cpu();
  const bool* values = used.const_data_ptr<bool>();
  std::copy(values, values + used.numel(), table.used.begin() + (whole_first - table.first));
}

void LazyAdam::agree_on_cut_rows(const UpdateStep& update) {
  if (cut_rows_.empty() || !update.sum_over_ranks) {
    TORCH_CHECK(cut_rows_.empty() || layout_.is_whole(),
                "[optim] rows of embeddings need sum_over_ranks when a slice is stepped");
    return;
  }
  const auto used = [&](const CutRow& cut) -> uint8_t& {
    Table& table = tables_[static_cast<size_t>(cut.table)];
    return table.used[static_cast<size_t>(cut.row - table.first)];
  };
  std::vector<double> owners(cut_rows_.size());  // that found a gradient in their part of the row
  for (size_t i = 0; i < owners.size(); ++i) {
    if (cut_rows_[i].table >= 0) owners[i] = used(cut_rows_[i]);
  }
  update.sum_over_ranks(owners);
  for (size_t i = 0; i < owners.size(); ++i) {
    if (cut_rows_[i].table >= 0) used(cut_rows_[i]) = owners[i] > 0 ? 1 : 0;
  }
}

std::vector<LazyAdam::Hole> LazyAdam::unused_rows() const {
  std::vector<Hole> holes;
  const int64_t size = layout_.slice().size();
  for (const Table& table : tables_) {
    for (size_t i = 0; i < table.used.size(); ++i) {
      if (table.used[i] != 0) continue;
      const int64_t from = table.offset + (table.first + static_cast<int64_t>(i)) * table.columns;
      const Hole hole{std::max<int64_t>(0, from), std::min(size, from + table.columns)};
      // Not with the last row of the table before: it may have settings of its own.
      if (i > 0 && table.used[i - 1] == 0) {
        holes.back().end = hole.end;
      } else {
        holes.push_back(hole);
      }
    }
  }
  return holes;
}

// Adam's stretches without the rows that are left: with every row used the very same runs.
void LazyAdam::step(Arena& arena, const UpdateStep& update) {
  const torch::Tensor grads = layout_.part_of(arena.grads());
  for (Table& table : tables_) find_used_rows(grads, table);
  agree_on_cut_rows(update);
  const std::vector<Hole> holes = unused_rows();
  auto hole = holes.begin();
  std::vector<kernels::Run<kernels::AdamScalars>> runs;
  for (const Part& part : layout_.stretches()) {
    const bool stepped = steps(update, layout_.settings(part));
    const auto scalars = numbers(update, layout_.settings(part));
    int64_t begin = part.begin;
    for (; hole != holes.end() && hole->begin < part.end; ++hole) {
      if (stepped && begin < hole->begin) runs.push_back({begin, hole->begin, scalars});
      begin = hole->end;
    }
    if (stepped && begin < part.end) runs.push_back({begin, part.end, scalars});
  }
  step_runs(arena, runs);
}

}  // namespace stretto::optim
