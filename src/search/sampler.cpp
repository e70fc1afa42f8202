#include "search/sampler.h"

namespace stretto::search {
namespace {

// A draw that is known already, or refused by a rule, is made again: so often at the most.
constexpr uint64_t kMostAttempts = 200;

// A space with more points than this is not looked through for those that are left.
constexpr uint64_t kMostLeft = 10'000;

/// Draws the points of one `next`.
class Draws {
 public:
  Draws(const Sampler& sampler, const std::set<std::string>& known, const PointCheck& is_sound)
      : sampler_(sampler), known_(known), is_sound_(is_sound) {}

  using Reason = Sampler::SkippedPoint::Reason;

  /// Why the point is no choice; absent: it is one.
  std::optional<Reason> refusal(const Point& point) const {
    if (!sampler_.space.contains(point)) return Reason::kNotInSpace;
    if (known_.contains(sampler_.space.text(point))) return Reason::kKnown;
    return is_sound_(point) ? std::nullopt : std::optional(Reason::kNotSound);
  }

  Point drawn(uint64_t attempt, const Point& given = {}) const {
    return sampler_.space.draw(sampler_.seed, known_.size(), attempt, given);
  }

  /// An enqueued point with other values for what it leaves out, until one is a choice; else what
  /// was drawn last, and why it is none.
  std::optional<Reason> complete(const Point& given, Point& point) const {
    std::optional<Reason> reason;
    for (uint64_t attempt = 0; attempt < kMostAttempts; ++attempt) {
      point = drawn(attempt, given);
      reason = refusal(point);
      if (!reason || !leaves_out(given, point)) break;
    }
    return reason;
  }

 private:
  static bool leaves_out(const Point& given, const Point& point) {
    for (size_t i = 0; i < point.size(); ++i) {
      if (point[i] && !(i < given.size() && given[i])) return true;
    }
    return false;
  }

  const Sampler& sampler_;
  const std::set<std::string>& known_;
  const PointCheck& is_sound_;
};

}  // namespace

std::optional<Sampler::Choice> Sampler::next(const std::set<std::string>& known,
                                             size_t num_enqueued, const PointCheck& is_sound,
                                             std::vector<SkippedPoint>* skipped_points) const {
  const Draws draws(*this, known, is_sound);
  while (num_enqueued < enqueued.size()) {
    const size_t number = num_enqueued++;
    Point point;
    const auto refusal = draws.complete(enqueued[number], point);
    if (!refusal) return Choice{point, num_enqueued};
    if (skipped_points != nullptr) skipped_points->push_back({number, point, *refusal});
  }
  for (uint64_t attempt = 0; !grid && attempt < kMostAttempts; ++attempt) {
    const Point point = draws.drawn(attempt);
    if (!draws.refusal(point)) return Choice{point, num_enqueued};
  }
  if (!grid && space.num_points() > kMostLeft) return std::nullopt;
  const Grid points(space);
  for (auto point = points.first(); point; point = points.next(*point)) {
    if (!draws.refusal(*point)) return Choice{*point, num_enqueued};
  }
  return std::nullopt;
}

}  // namespace stretto::search
