#include "kernels/recurrent/location_pass.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "kernels/gemm/gemm.h"

namespace stretto::kernels {
namespace {

/// Memory of a thread that grows to the largest row it has seen.
struct ThreadMemory {
  std::vector<float> lines, line_slopes, keys, powers, peaks, key_slopes, products;
};

ThreadMemory& thread_memory() {
  thread_local ThreadMemory mine;
  return mine;
}

float* room_for(std::vector<float>& store, int64_t count) {
  if (static_cast<int64_t>(store.size()) < count) store.resize(static_cast<size_t>(count));
  return store.data();
}

}  // namespace

Location::Location(const at::Tensor& weight) {
  if (!weight.defined()) return;
  const at::Tensor own = weight.detach();
  width_ = own.size(0);
  kernel_ = own.size(1) / 2;
  padded_ = (kernel_ + 15) / 16 * 16;
  filters_ = own.t().contiguous();
  transpose_ =
      at::constant_pad_nd(own.reshape({width_, 2, kernel_}), {0, padded_ - kernel_}).contiguous();
}

cpu::LocateRow Location::lines(int64_t count, const float* last, const float* sum) const {
  const int64_t length = count + kernel_ - 1, margin = kernel_ / 2;
  float* line = room_for(thread_memory().lines, 2 * length);
  std::fill_n(line, 2 * length, 0.0f);
  std::copy_n(last, count, line + margin);
  std::copy_n(sum, count, line + length + margin);
  return {.last = line,
          .sum = line + length,
          .filters = filters_.const_data_ptr<float>(),
          .keys = nullptr,
          .count = count,
          .width = width_,
          .kernel = kernel_,
          .out = nullptr};
}

cpu::AttendRow Location::seen(const cpu::AttendRow& item, const float* last,
                              const float* sum) const {
  ThreadMemory& mine = thread_memory();
  cpu::LocateRow row = lines(item.count, last, sum);
  row.keys = item.keys;
  row.out = room_for(mine.keys, item.count * width_);
  const cpu::Cells& cells = cpu::table().cells;
  cells.locate(row);
  float* powers = room_for(mine.powers, item.count * width_);
  float* peaks = room_for(mine.peaks, item.count);
  cells.powers(row.out, powers, peaks, 0, item.count, width_);
  cpu::AttendRow made = item;
  made.keys = row.out;
  made.powers = powers;
  made.peaks = peaks;
  return made;
}

float* Location::key_slopes(const cpu::AttendRow& item) const {
  float* slopes = room_for(thread_memory().key_slopes, item.count * width_);
  std::fill_n(slopes, item.count * width_, 0.0f);
  return slopes;
}

void Location::backward(const cpu::AttendRow& item, const float* last, const float* sum,
                        const Slopes& slopes) const {
  ThreadMemory& mine = thread_memory();
  const cpu::LocateRow row = lines(item.count, last, sum);
  const int64_t length = item.count + kernel_ - 1, margin = kernel_ / 2;
  float* slopes_of_lines = room_for(mine.line_slopes, 2 * length);
  std::fill_n(slopes_of_lines, 2 * length, 0.0f);
  const cpu::Cells& cells = cpu::table().cells;
  cells.locate_backward(row, {.dout = slopes.keys,
                              .transpose = transpose_.const_data_ptr<float>(),
                              .padded = padded_,
                              .scratch = room_for(mine.products, item.count * padded_),
                              .dfilters = slopes.filters,
                              .dlast = slopes_of_lines,
                              .dsum = slopes_of_lines + length});
  std::copy_n(slopes_of_lines + margin, item.count, slopes.last);
  cells.add(slopes_of_lines + length + margin, slopes.sum, item.count);
}

at::Tensor Location::weight_slopes(const at::Tensor& filters) const {
  return gemm::column_sums(filters).view({2 * kernel_, width_}).t().contiguous();
}

}  // namespace stretto::kernels
