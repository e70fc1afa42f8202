#include "compress/stack_shape.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/text.h"

namespace stretto::compress {
namespace {

// The numbers of the `count` largest, ascending; of equal ones the first.
std::vector<int64_t> largest(const std::vector<double>& values, int64_t count) {
  std::vector<int64_t> order(values.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return values[static_cast<size_t>(a)] > values[static_cast<size_t>(b)];
  });
  order.resize(static_cast<size_t>(count));
  std::sort(order.begin(), order.end());
  return order;
}

void require_room(const StackShape& shape, const std::string& what, int64_t wanted, int64_t there) {
  if (wanted >= 0 && wanted <= there) return;
  throw Error(ExitCode::kUsage,
              "`" + shape.prefix + "layers` has " + counted(there, what) + ", and " +
                  with_thousands(wanted) + " are to stay",
              "ask for 1 to " + with_thousands(there));
}

void require_heads(const StackShape& shape, int64_t wanted) {
  if (wanted == 0) return;
  if (shape.num_heads == 0) {
    throw Error(ExitCode::kUsage,
                "heads of `" + shape.prefix +
                    "layers` cannot be taken out: their number is not "
                    "known, or more than queries, keys and values belongs to them",
                "take out feed-forward units or layers");
  }
  require_room(shape, "head", wanted, shape.num_heads);
  const int64_t together = shape.heads_of_a_group();
  if (wanted % together == 0) return;
  throw Error(ExitCode::kUsage,
              with_thousands(wanted) + " heads of `" + shape.prefix + "layers` are to stay, and " +
                  with_thousands(together) + " share keys and values each",
              "ask for a multiple of " + with_thousands(together));
}

// What a share leaves of a number, rounded up to a multiple; 0 where nothing is taken out.
int64_t left_of(int64_t count, double share, int64_t multiple, const std::string& what) {
  if (!(share >= 0 && share < 1)) {
    throw Error(ExitCode::kUsage,
                "a share of " + shortest(share) + " of the " + what + " cannot be taken out",
                "give one of at least 0 and below 1: something must be left");
  }
  if (share == 0) return 0;
  constexpr double kRounding = 1e-9;  // 12 * (1 - 0.75) is above 3
  const double left = static_cast<double>(count) * (1 - share);
  const auto whole = static_cast<int64_t>(std::ceil(left - kRounding));
  return std::min(count, (std::max<int64_t>(1, whole) + multiple - 1) / multiple * multiple);
}

}  // namespace

StackTarget target_of(const StackShape& shape, const StackRemoval& removal) {
  constexpr int64_t kUnits = 8;
  if (removal.heads > 0 && shape.num_heads == 0) require_heads(shape, /*wanted=*/1);
  return {.num_layers = left_of(shape.num_layers, removal.layers, 1, "layers"),
          .ffn_dim = left_of(shape.ffn_dim, removal.units, kUnits, "units"),
          .num_heads = left_of(shape.num_heads, removal.heads, shape.heads_of_a_group(), "heads")};
}

StackChoice choose_parts(const StackShape& shape, const StackImportance& importance,
                         const StackTarget& target) {
  require_room(shape, "layer", target.num_layers, shape.num_layers);
  require_room(shape, "unit", target.ffn_dim, shape.ffn_dim);
  require_heads(shape, target.num_heads);
  StackChoice choice;
  choice.layers =
      largest(importance.layers, target.num_layers == 0 ? shape.num_layers : target.num_layers);
  const int64_t units = target.ffn_dim == 0 ? shape.ffn_dim : target.ffn_dim;
  for (const auto& of_layer : importance.units) choice.units.push_back(largest(of_layer, units));
  if (target.num_heads == 0 || target.num_heads == shape.num_heads) return choice;
  for (const auto& of_layer : importance.heads) {
    choice.heads.push_back(largest(of_layer, target.num_heads / shape.heads_of_a_group()));
  }
  for (const auto& of_layer : importance.cross_heads) {
    choice.cross_heads.push_back(largest(of_layer, target.num_heads / shape.heads_of_a_group()));
  }
  return choice;
}

StackShape shape_of(const StackShape& shape, const StackChoice& choice) {
  StackShape left = shape;
  left.num_layers = static_cast<int64_t>(choice.layers.size());
  if (!choice.units.empty()) left.ffn_dim = static_cast<int64_t>(choice.units.front().size());
  if (!choice.heads.empty()) {
    left.num_kv_heads = static_cast<int64_t>(choice.heads.front().size());
    left.num_heads = left.num_kv_heads * shape.heads_of_a_group();
  }
  return left;
}

}  // namespace stretto::compress
