#pragma once

#include <cstddef>
#include <utility>

namespace stretto::config {

namespace detail {

template <size_t kPlace, class Declared>
struct FieldAt {
  Declared declared;
};

template <class Places, class... Declared>
struct FieldsAt;
template <size_t... kPlaces, class... Declared>
struct FieldsAt<std::index_sequence<kPlaces...>, Declared...> : FieldAt<kPlaces, Declared>... {
  explicit FieldsAt(Declared... declared) : FieldAt<kPlaces, Declared>{std::move(declared)}... {}

  template <class Visit>
  void for_each(Visit visit) {
    (visit(static_cast<FieldAt<kPlaces, Declared>&>(*this).declared), ...);
  }
};

}  // namespace detail

/// What `fields()` of an options struct returns: the declarations of its members, in their order.
///
///     return Fields{field(&O::width, "width", "…"), field(&O::depth, "depth", "…")};
///
/// A std::tuple would do. But dozens of different types make its constructors cost a compiler half
/// of what a file costs that reads an experiment.
template <class... Declared>
class Fields : public detail::FieldsAt<std::index_sequence_for<Declared...>, Declared...> {
  using Base = detail::FieldsAt<std::index_sequence_for<Declared...>, Declared...>;

 public:
  static constexpr size_t kSize = sizeof...(Declared);

  explicit Fields(Declared... declared) : Base(std::move(declared)...) {}

  /// These, then `more`.
  template <class... More>
  Fields<Declared..., More...> with(Fields<More...> more) && {
    return std::move(*this).joined(std::move(more), std::index_sequence_for<Declared...>{},
                                   std::index_sequence_for<More...>{});
  }

 private:
  template <class... More, size_t... kPlaces, size_t... kMore>
  Fields<Declared..., More...> joined(Fields<More...> more, std::index_sequence<kPlaces...>,
                                      std::index_sequence<kMore...>) && {
    return Fields<Declared..., More...>(
        std::move(static_cast<detail::FieldAt<kPlaces, Declared>&>(*this).declared)...,
        std::move(static_cast<detail::FieldAt<kMore, More>&>(more).declared)...);
  }
};

}  // namespace stretto::config
