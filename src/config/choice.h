#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace stretto::config {

/// One of several parts, as the key `name` of its section says: "model.encoder.name" decides which
/// other keys `model.encoder` has.
///
///     struct LstmOptions {
///       static constexpr const char* kName = "lstm";
///       int64_t num_layers = 2;
///       static auto fields() { … }
///     };
///     Choice<Seq2SeqOptions, LstmOptions> encoder;  // a Transformer, as long as nothing
///     chooses … field(&O::encoder, "encoder", "reads the source")
///
/// Alternatives are structs with `fields()` and a name of their own, which none of their keys is
/// called. Each begins with its defaults.
template <class... Alternatives>
class Choice {
 public:
  static constexpr bool is_choice = true;

  Choice() = default;
  template <class T>
  requires(std::same_as<T, Alternatives> || ...) Choice(T chosen)
      : name_(T::kName), chosen_(std::move(chosen)) {}

  static std::vector<std::string> names() { return {Alternatives::kName...}; }

  const std::string& name() const { return name_; }
  template <class T>
  bool is() const {
    return std::holds_alternative<T>(chosen_);
  }
  /// Throws std::bad_variant_access when another part is chosen.
  template <class T>
  const T& as() const {
    return std::get<T>(chosen_);
  }
  template <class T>
  T& as() {
    return std::get<T>(chosen_);
  }
  /// visit(f) calls `f` with the options of the chosen part.
  template <class F>
  decltype(auto) visit(F&& f) const {
    return std::visit(std::forward<F>(f), chosen_);
  }
  template <class F>
  decltype(auto) visit(F&& f) {
    return std::visit(std::forward<F>(f), chosen_);
  }

  /// The part of this name with its defaults; what was chosen before is gone, unless it is the
  /// same. @return false, and nothing changes, when there is none
  bool select(std::string_view wanted) { return (select_if<Alternatives>(wanted) || ...); }

  /// Where the key `name` lives. Whoever writes it calls select() too.
  std::string& name_to_bind() { return name_; }

 private:
  template <class T>
  bool select_if(std::string_view wanted) {
    if (wanted != T::kName) return false;
    if (!is<T>()) chosen_.template emplace<T>();
    name_ = T::kName;
    return true;
  }

  using First = std::variant_alternative_t<0, std::variant<Alternatives...>>;
  std::string name_ = First::kName;
  std::variant<Alternatives...> chosen_;
};

}  // namespace stretto::config
