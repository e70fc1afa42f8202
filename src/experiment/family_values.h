#pragma once

#include <any>
#include <concepts>
#include <typeinfo>
#include <utility>

namespace stretto::experiment {

/// Values that one family alone has, such as those of its options of a command: a struct of the
/// family's, on its way through rooms that do not know its type.
class FamilyValues {
 public:
  FamilyValues() = default;
  /// A struct of a family stands for itself where a request is made.
  template <class T>
  requires(!std::same_as<T, FamilyValues>) FamilyValues(T values) : values_(std::move(values)) {}

  /// The struct; where no values are given, one with its defaults. Throws Error(kInternal) when
  /// they are of another type.
  template <class T>
  const T& as() const {
    static const T kDefaults{};
    if (!values_.has_value()) return kDefaults;
    const T* found = std::any_cast<T>(&values_);
    if (found == nullptr) refuse(typeid(T));
    return *found;
  }

  /// The same, to be changed.
  template <class T>
  T& edit() {
    if (!values_.has_value()) return values_.emplace<T>();
    T* found = std::any_cast<T>(&values_);
    if (found == nullptr) refuse(typeid(T));
    return *found;
  }

 private:
  [[noreturn]] void refuse(const std::type_info& wanted) const;

  std::any values_;
};

}  // namespace stretto::experiment
