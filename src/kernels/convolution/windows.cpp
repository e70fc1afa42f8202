#include "kernels/convolution/windows.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "kernels/convolution/lines.h"
#include "kernels/fused_common.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/row_items.h"
#include "kernels/rounding.h"

namespace stretto::kernels::windows {
namespace {

using fused::AutogradContext, fused::variable_list;
using gemm::divide_up;

/// Which rows and columns an output sees, and how many outputs there are.
struct Form {
  std::vector<LineSpan> spans;  ///< a picture's or an utterance's rows
  LineTaps rows, columns;
  int64_t num_columns, num_columns_out;
  int64_t channels, filters;

  static Form of_packed(const at::Tensor& weight, const PackedPlanes& planes);
  /// Of x [N, C, H, W].
  static Form of_planes(const at::Tensor& x, const at::Tensor& weight, const PlaneWindow& window);

  at::Tensor input_rows() const { return input_lines(spans, rows); }
};

Form Form::of_packed(const at::Tensor& weight, const PackedPlanes& planes) {
  const TimeWindow window{
      .offsets = planes.offsets, .kernel = weight.size(2), .stride = planes.time_stride};
  return {.spans = spans_of(window),
          .rows = {.count = window.kernel, .stride = window.stride, .before = window.left()},
          .columns = {.count = weight.size(3),
                      .stride = planes.column_stride,
                      .before = (weight.size(3) - 1) / 2},
          .num_columns = planes.columns,
          .num_columns_out = planes.columns_out(),
          .channels = weight.size(1),
          .filters = weight.size(0)};
}

Form Form::of_planes(const at::Tensor& x, const at::Tensor& weight, const PlaneWindow& window) {
  const auto side = [&](size_t i) {
    return LineTaps{.count = weight.size(static_cast<int64_t>(i) + 2),
                    .stride = window.strides()[i],
                    .before = window.paddings()[i]};
  };
  Form form{.spans = {},
            .rows = side(0),
            .columns = side(1),
            .num_columns = x.size(3),
            .num_columns_out = 0,
            .channels = weight.size(1),
            .filters = weight.size(0)};
  const auto outputs = [](int64_t length, const LineTaps& s) {
    return (length + 2 * s.before - s.count) / s.stride + 1;
  };
  form.num_columns_out = outputs(form.num_columns, form.columns);
  const int64_t height = x.size(2), height_out = outputs(height, form.rows);
  for (int64_t n = 0; n < x.size(0); ++n)
    form.spans.push_back({n * height, height, n * height_out, height_out});
  return form;
}

/// Rows of x with `first` left when their place is divided by the stride: [rows], int32.
at::Tensor rows_of_class(const Form& form, int64_t first) {
  std::vector<int32_t> rows;
  for (const LineSpan& span : form.spans)
    for (int64_t t = 0; t < span.length; ++t)
      if ((t + form.rows.before) % form.rows.stride == first)
        rows.push_back(static_cast<int32_t>(span.in + t));
  return at::tensor(rows, at::kInt);
}

/// Rows between columns of zeroes. A window begins `step` numbers behind the one before it.
struct PaddedRows {
  at::Tensor values;  ///< [rows, (columns + zeroes) * channels]
  int64_t step;

  const float* data() const { return values.const_data_ptr<float>(); }
  int64_t row() const { return values.size(1); }
};

/// x [N, columns * channels] with `before` columns of zeroes in front of each row, and as many
/// behind it as make at least `needed` in all.
PaddedRows padded_rows(const at::Tensor& x, int64_t channels, int64_t stride, int64_t before,
                       int64_t needed, Compute compute) {
  const int64_t behind = std::max<int64_t>(0, needed - before - x.size(1) / channels);
  const at::Tensor values = rounded(x, compute);
  return {.values = before + behind == 0
                        ? values
                        : at::constant_pad_nd(values, {before * channels, behind * channels}),
          .step = stride * channels};
}

PaddedRows padded_inputs(const at::Tensor& x, const Form& form, Compute compute) {
  const LineTaps& side = form.columns;
  return padded_rows(x, form.channels, side.stride, side.before,
                     (form.num_columns_out - 1) * side.stride + side.count, compute);
}

/// A factor [depth, columns] in panels, for all of its depth.
at::Tensor panels_of(const at::Tensor& factor, Compute compute) {
  const at::Tensor dense = factor.contiguous();
  const int64_t depth = factor.size(0), columns = factor.size(1), panel = cpu::table().panel;
  const int64_t panels = divide_up(columns, panel);
  at::Tensor packed = at::empty({panels * depth * panel}, factor.options());
  at::parallel_for(0, panels, divide_up(1 << 14, depth * panel + 1),
                   [&](int64_t begin, int64_t end) {
                     cpu::table().pack({.b = {dense.const_data_ptr<float>(), columns, 1},
                                        .depth = depth,
                                        .columns = columns,
                                        .begin = begin,
                                        .end = end,
                                        .compute = compute,
                                        .out = packed.data_ptr<float>()});
                   });
  return packed;
}

/// All rows of outputs, in blocks whose rows of x stay in the second cache for all columns.
void multiply(const cpu::WindowItem& item, int64_t rows, int64_t row_stride) {
  constexpr int64_t kNumbers = 1 << 15;
  const int64_t block =
      std::max<int64_t>(1, kNumbers / std::max<int64_t>(1, item.x_row * row_stride));
  at::parallel_for(0, divide_up(rows, block), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      cpu::table().convolution.windows(item, i * block, std::min((i + 1) * block, rows));
  });
}

/// Taps `first`, `first` + stride and so on.
int64_t taps_of_class(const LineTaps& side, int64_t first) {
  return first < side.count ? divide_up(side.count - first, side.stride) : 0;
}

/// The gradient of x. Inputs fall into classes by what is left of their place when it is divided by
/// the stride: all of a class see the same taps, and are a convolution of the slopes.
class SlopesOfInputs {
 public:
  SlopesOfInputs(const at::Tensor& dy, const at::Tensor& weight, const Form& form, Compute compute)
      : weight_(weight),
        form_(form),
        compute_(compute),
        back_(output_lines(form.spans, form.rows)) {
    const LineTaps& side = form.columns;
    const int64_t last = (form.num_columns - 1 + side.before) / side.stride;
    before_ = taps_of_class(side, 0) - 1;
    slopes_ = padded_rows(dy, form.filters, 1, before_, before_ + last + 1, compute);
  }

  at::Tensor all() const {
    const LineTaps &rows = form_.rows, &columns = form_.columns;
    const bool is_seen = rows.stride <= rows.count && columns.stride <= columns.count;
    const std::array<int64_t, 2> sizes{back_.size(0), form_.num_columns * form_.channels};
    at::Tensor dx =
        is_seen ? at::empty(sizes, weight_.options()) : at::zeros(sizes, weight_.options());
    for (int64_t row = 0; row < std::min(rows.stride, rows.count); ++row) {
      const at::Tensor targets = rows_of_class(form_, row);
      const at::Tensor back =
          back_.index_select(0, targets).slice(1, row, rows.count, rows.stride).contiguous();
      for (int64_t column = 0; column < std::min(columns.stride, columns.count); ++column)
        write_class(back, targets, row, column, dx);
    }
    round_(dx, compute_);
    return dx;
  }

 private:
  /// The taps of columns stand in the order of the columns of dy, which is that of taps backwards.
  at::Tensor factor(int64_t row, int64_t column) const {
    return weight_.slice(2, row, form_.rows.count, form_.rows.stride)
        .slice(3, column, form_.columns.count, form_.columns.stride)
        .flip({3})
        .permute({2, 3, 0, 1})
        .reshape({-1, form_.channels});
  }

  void write_class(const at::Tensor& back, const at::Tensor& targets, int64_t row, int64_t column,
                   at::Tensor& dx) const {
    const LineTaps& side = form_.columns;
    const int64_t taps = taps_of_class(side, column);
    // Input column first + u * stride meets the first of these taps at output column begin + u.
    const int64_t begin = std::max<int64_t>(0, divide_up(side.before - column, side.stride));
    const int64_t first = column + begin * side.stride - side.before;
    if (first >= form_.num_columns || back.size(0) == 0) return;
    const at::Tensor panels = panels_of(factor(row, column), compute_);
    const int64_t skipped = (before_ + begin - (taps - 1)) * form_.filters;
    multiply({.x = slopes_.data() + skipped,
              .x_row = slopes_.row(),
              .x_step = slopes_.step,
              .lines = back.const_data_ptr<int32_t>(),
              .taps = back.size(1),
              .width = taps * form_.filters,
              .b = panels.const_data_ptr<float>(),
              .bias = nullptr,
              .outputs = divide_up(form_.num_columns - first, side.stride),
              .columns = form_.channels,
              .y = dx.data_ptr<float>() + first * form_.channels,
              .y_row = dx.size(1),
              .y_step = side.stride * form_.channels,
              .targets = targets.const_data_ptr<int32_t>()},
             back.size(0), 1);
  }

  const at::Tensor& weight_;
  const Form& form_;
  Compute compute_;
  at::Tensor back_;
  int64_t before_ = 0;  ///< columns of zeroes in front of dy
  PaddedRows slopes_;
};

/// Parts of the rows whose sums are made by themselves, so that threads share few weights: a rule
/// on sizes alone.
int64_t parts_of(int64_t rows, int64_t numbers) {
  constexpr int64_t kNumbers = 1 << 18, kMost = 16;
  return std::clamp<int64_t>(kNumbers / std::max<int64_t>(1, numbers), 1, std::min(kMost, rows));
}

at::Tensor slopes_of_weight(const at::Tensor& x, const at::Tensor& lines, const at::Tensor& dy,
                            const Form& form, Compute compute) {
  constexpr int64_t kColumns = 256;  // of an item, for which windows are copied once
  const PaddedRows inputs = padded_inputs(x, form, compute);
  const int64_t panel = cpu::table().panel;
  const int64_t columns = divide_up(form.filters, panel) * panel,
                groups = divide_up(columns, kColumns);
  const int64_t taps = form.rows.count, width = form.columns.count * form.channels;
  const int64_t rows = lines.size(0), parts = parts_of(rows, taps * width * columns);
  at::Tensor slopes = rounded(dy, compute).view({-1, form.filters});
  if (columns > form.filters) slopes = at::constant_pad_nd(slopes, {0, columns - form.filters});
  at::Tensor sums = at::empty({parts, taps, width, columns}, x.options());
  at::parallel_for(0, parts * taps * groups, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t part = i / (taps * groups), tap = i / groups % taps;
      const int64_t first = rows * part / parts, column = i % groups * kColumns;
      cpu::table().convolution.window_slopes(
          {.x = inputs.data(),
           .x_row = inputs.row(),
           .x_step = inputs.step,
           .lines = lines.const_data_ptr<int32_t>() + first * taps + tap,
           .taps = taps,
           .width = width,
           .dy = slopes.const_data_ptr<float>() + first * form.num_columns_out * columns + column,
           .dy_row = form.num_columns_out * columns,
           .dy_step = columns,
           .rows = rows * (part + 1) / parts - first,
           .outputs = form.num_columns_out,
           .columns = std::min(kColumns, columns - column),
           .slopes = sums.data_ptr<float>() + (part * taps + tap) * width * columns + column,
           .slope_row = columns});
    }
  });
  at::Tensor total = sums[0];
  for (int64_t part = 1; part < parts; ++part) total.add_(sums[part]);
  at::Tensor dweight = total.slice(2, 0, form.filters)
                           .view({taps, form.columns.count, form.channels, form.filters})
                           .permute({3, 2, 0, 1})
                           .contiguous();
  round_(dweight, compute);
  return dweight;
}

at::Tensor convolve(const at::Tensor& x, const at::Tensor& lines, const at::Tensor& weight,
                    const at::Tensor& bias, const Form& form, Compute compute) {
  const PaddedRows inputs = padded_inputs(x, form, compute);
  const at::Tensor factor = weight.permute({2, 3, 1, 0}).reshape({-1, form.filters});
  const at::Tensor panels = panels_of(factor, compute), shift = rounded(bias, compute);
  at::Tensor y = at::empty({lines.size(0), form.num_columns_out * form.filters}, x.options());
  multiply({.x = inputs.data(),
            .x_row = inputs.row(),
            .x_step = inputs.step,
            .lines = lines.const_data_ptr<int32_t>(),
            .taps = form.rows.count,
            .width = form.columns.count * form.channels,
            .b = panels.const_data_ptr<float>(),
            .bias = shift.defined() ? shift.const_data_ptr<float>() : nullptr,
            .outputs = form.num_columns_out,
            .columns = form.filters,
            .y = y.data_ptr<float>(),
            .y_row = y.size(1),
            .y_step = form.filters,
            .targets = nullptr},
           lines.size(0), form.rows.stride);
  round_(y, compute);
  return y;
}

struct PackedNode : torch::autograd::Function<PackedNode> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& x, const at::Tensor& weight,
                            const std::optional<at::Tensor>& bias, const PackedPlanes& planes) {
    const Compute compute = ComputeScope::current();
    const Form form = Form::of_packed(weight, planes);
    const at::Tensor rows = x.contiguous(), lines = form.input_rows();
    ctx->save_for_backward({rows, weight, lines, planes.offsets.values});
    ctx->saved_data["planes"] = std::vector<int64_t>{planes.offsets.max_length, planes.columns,
                                                     planes.time_stride, planes.column_stride};
    ctx->saved_data["biased"] = bias.has_value();
    fused::keep(ctx, compute);
    return convolve(rows, lines, weight, bias.value_or(at::Tensor()), form, compute);
  }

  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    const auto saved = ctx->get_saved_variables();
    const at::Tensor &x = saved[0], &weight = saved[1], &lines = saved[2];
    const auto numbers = ctx->saved_data["planes"].toIntVector();
    const Form form =
        Form::of_packed(weight, {.offsets = {.values = saved[3], .max_length = numbers[0]},
                                 .columns = numbers[1],
                                 .time_stride = numbers[2],
                                 .column_stride = numbers[3]});
    const Compute compute = fused::kept_compute(ctx);
    const at::Tensor dy = grads[0].contiguous();
    at::Tensor dx, dweight, dbias;
    if (ctx->needs_input_grad(0)) dx = SlopesOfInputs(dy, weight, form, compute).all();
    if (ctx->needs_input_grad(1)) dweight = slopes_of_weight(x, lines, dy, form, compute);
    if (ctx->saved_data["biased"].toBool() && ctx->needs_input_grad(2))
      dbias = gemm::column_sums(dy.view({-1, form.filters}));
    return {dx, dweight, dbias, {}};
  }
};

}  // namespace

bool takes_packed_rows() {
  return &cpu::table() != &cpu::portable::kTable || gemm::is_taken_always();
}

at::Tensor filter_slopes(const at::Tensor& x, const at::Tensor& dy, const at::Tensor& weight,
                         const PlaneWindow& window) {
  const Form form = Form::of_planes(x, weight, window);
  const auto rows_of = [](const at::Tensor& planes) {
    const at::Tensor rows = planes.permute({0, 2, 3, 1}).contiguous();
    return rows.view({rows.size(0) * rows.size(1), -1});
  };
  return slopes_of_weight(rows_of(x), form.input_rows(), rows_of(dy), form, Compute::kFp32);
}

bool takes_filter_slopes(const at::Tensor& weight, const PlaneWindow& window) {
  constexpr int64_t kPanel = 16;  // of AVX2: with more lanes libtorch has loops of its own
  const bool fits = window.groups == 1 && weight.size(2) * weight.size(3) > 1;
  return fits && (cpu::table().panel == kPanel || gemm::is_taken_always());
}

at::Tensor packed_convolution(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                              const PackedPlanes& planes) {
  const at::Tensor shift = bias.defined() ? bias.contiguous() : bias;
  if (at::GradMode::is_enabled())
    return PackedNode::apply(
        x, weight, bias.defined() ? std::optional<at::Tensor>(shift) : std::nullopt, planes);
  const Form form = Form::of_packed(weight, planes);
  return convolve(x.contiguous(), form.input_rows(), weight, shift, form, ComputeScope::current());
}

}  // namespace stretto::kernels::windows
