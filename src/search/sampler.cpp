#include "search/sampler.h"

namespace stretto::search {
namespace {

// A draw that is known already, or refused by a rule, is made again: so often at the most.
constexpr uint64_t kMostAttempts = 200;

// A space with more points than this is not looked through for those that are left.
constexpr uint64_t kMostLeft = 10'000;

}  // namespace

std::optional<Sampler::Choice> Sampler::next(const std::set<std::string>& known,
                                             size_t num_enqueued,
                                             const PointCheck& is_sound) const {
  const uint64_t trial = known.size();
  const auto is_new = [&](const Point& point) {
    return space.contains(point) && !known.contains(space.text(point)) && is_sound(point);
  };
  while (num_enqueued < enqueued.size()) {
    const Point point = space.draw(seed, trial, 0, enqueued[num_enqueued++]);
    if (is_new(point)) return Choice{point, num_enqueued};
  }
  for (uint64_t attempt = 0; !grid && attempt < kMostAttempts; ++attempt) {
    const Point point = space.draw(seed, trial, attempt);
    if (is_new(point)) return Choice{point, num_enqueued};
  }
  if (!grid && space.num_points() > kMostLeft) return std::nullopt;
  const Grid points(space);
  for (auto point = points.first(); point; point = points.next(*point)) {
    if (is_new(*point)) return Choice{*point, num_enqueued};
  }
  return std::nullopt;
}

}  // namespace stretto::search
