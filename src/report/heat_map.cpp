#include "report/heat_map.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "report/html_text.h"
#include "report/utf8.h"

namespace stretto::report {
namespace {

constexpr size_t kMaxLabel = 16;
constexpr double kCell = 20, kGap = 1;
constexpr double kCharacterWidth = 7.2;  // of the 12-unit labels
constexpr int kLevels = 10;
constexpr float kWorthATitle = 0.05f;  // a row sums to one, so at most 20 cells of it have a title

bool fits(const TextPairSample& sample) {
  const size_t rows = sample.output_pieces.size(), columns = sample.input_pieces.size();
  const auto are = [](size_t given, size_t pieces) {
    return given == pieces || given == std::min(pieces, kMostDrawnPieces);
  };
  if (rows == 0 || columns == 0 || !are(sample.attention.size(), rows)) return false;
  return std::all_of(sample.attention.begin(), sample.attention.end(),
                     [&](const auto& row) { return are(row.size(), columns); });
}

std::string piece_label(const std::string& piece) {
  return escape_html(piece, kMaxLabel);
}

double label_width(const std::vector<std::string>& pieces, size_t count) {
  size_t longest = 1;
  for (size_t i = 0; i < count; ++i) {
    longest = std::max(longest, std::min(kMaxLabel, count_code_points(valid_utf8(pieces[i]))));
  }
  return 8 + kCharacterWidth * static_cast<double>(longest);
}

/// Where the cells lie.
struct Grid {
  size_t rows, columns;
  double left, top;
  double x(size_t column) const { return left + kCell * static_cast<double>(column); }
  double y(size_t row) const { return top + kCell * static_cast<double>(row); }
};

Grid grid_of(const TextPairSample& sample) {
  const size_t rows = std::min(kMostDrawnPieces, sample.output_pieces.size());
  const size_t columns = std::min(kMostDrawnPieces, sample.input_pieces.size());
  return {rows, columns, label_width(sample.output_pieces, rows),
          label_width(sample.input_pieces, columns)};
}

std::string whole(double value) {
  return fixed(value, 0);
}

std::string render_labels(const TextPairSample& sample, const Grid& grid) {
  std::string out;
  for (size_t column = 0; column < grid.columns; ++column) {
    out += "<text transform=\"translate(" + whole(grid.x(column) + kCell / 2 + 4) + " " +
           whole(grid.top - 6) + ") rotate(-90)\">" + piece_label(sample.input_pieces[column]) +
           "</text>";
  }
  for (size_t row = 0; row < grid.rows; ++row) {
    out += "<text text-anchor=\"end\" x=\"" + whole(grid.left - 6) + "\" y=\"" +
           whole(grid.y(row) + kCell / 2 + 4) + "\">" + piece_label(sample.output_pieces[row]) +
           "</text>";
  }
  return out;
}

std::string render_cells(const TextPairSample& sample, const Grid& grid) {
  std::array<std::string, kLevels + 1> faint;  // cells without a title, one path per level
  std::string titled;
  const std::string side = whole(kCell - kGap);
  for (size_t row = 0; row < grid.rows; ++row) {
    for (size_t column = 0; column < grid.columns; ++column) {
      const float raw = sample.attention[row][column];
      const float weight = std::isfinite(raw) ? std::clamp(raw, 0.0f, 1.0f) : 0.0f;
      // The square root lets the eye tell 2 % from 10 %; below 1 % is as good as nothing.
      const double shade = weight < 0.01f ? 0 : std::sqrt(static_cast<double>(weight));
      const auto level = static_cast<size_t>(std::lround(shade * kLevels));
      const std::string x = whole(grid.x(column)), y = whole(grid.y(row));
      if (weight < kWorthATitle) {
        faint[level] += "M" + x + " " + y + "h" + side + "v" + side + "h-" + side + "z";
        continue;
      }
      titled += "<rect class=\"a" + std::to_string(level) + "\" x=\"" + x + "\" y=\"" + y +
                "\" width=\"" + side + "\" height=\"" + side + "\"><title>" +
                piece_label(sample.output_pieces[row]) + " ← " + piece_label(sample.input_pieces[column]) +
                " " + whole(100 * static_cast<double>(weight)) + "%</title></rect>";
    }
  }
  std::string out;
  for (size_t level = 0; level < faint.size(); ++level) {
    if (faint[level].empty()) continue;
    out += "<path class=\"a" + std::to_string(level) + "\" d=\"" + faint[level] + "\"/>";
  }
  return out + titled;
}

}  // namespace

std::string render_attention(const TextPairSample& sample, const std::string& label) {
  if (!fits(sample)) return "";
  const Grid grid = grid_of(sample);
  const std::string width = whole(grid.x(grid.columns) + 2), height = whole(grid.y(grid.rows) + 2);
  std::string out = "<div class=\"scroll\"><svg class=\"heat\" width=\"" + width + "\" height=\"" +
                    height + "\" viewBox=\"0 0 " + width + " " + height +
                    "\" role=\"img\" aria-label=\"" + escape_html(label) + "\">" +
                    render_cells(sample, grid) + render_labels(sample, grid) + "</svg></div>";
  if (grid.rows < sample.output_pieces.size() || grid.columns < sample.input_pieces.size()) {
    out += "<p class=\"note\">The first " + std::to_string(grid.rows) + " of " +
           std::to_string(sample.output_pieces.size()) + " pieces by the first " +
           std::to_string(grid.columns) + " of " + std::to_string(sample.input_pieces.size()) +
           ".</p>";
  }
  return out;
}

}  // namespace stretto::report
