#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "distributed/watch/activity.h"

namespace stretto::distributed {

/// What the heartbeat's connections carry after the hello: messages of one fixed length.
struct HeartbeatFrame {
  enum class Kind : uint32_t { kBeat = 1, kGoodbye, kLost };
  static constexpr size_t kTextBytes = 240;
  static constexpr size_t kStatesBytes = Activity::kChannels * sizeof(uint64_t);

  uint32_t kind = static_cast<uint32_t>(Kind::kBeat);
  int32_t rank = 0;       ///< goodbye: who leaves; lost: who is lost
  int32_t exit_code = 0;  ///< goodbye
  uint32_t text_bytes = 0;
  std::array<char, kTextBytes> text{};  ///< words; beat: one 64-bit word for each channel

  void set_text(std::string_view words) {
    text_bytes = static_cast<uint32_t>(words.size() < kTextBytes ? words.size() : kTextBytes);
    std::memcpy(text.data(), words.data(), text_bytes);
  }
  std::string words() const {
    return {text.data(), text_bytes < kTextBytes ? text_bytes : kTextBytes};
  }
  void set_states(const Activity::States& states) {
    for (size_t i = 0; i < states.size(); ++i) {
      const uint64_t word = states[i].packed();
      std::memcpy(text.data() + i * sizeof word, &word, sizeof word);
    }
    text_bytes = kStatesBytes;
  }
  /// The states in a heartbeat; nothing when it carries none.
  std::optional<Activity::States> states() const {
    if (text_bytes != kStatesBytes) return {};
    Activity::States found;
    for (size_t i = 0; i < found.size(); ++i) {
      uint64_t word = 0;
      std::memcpy(&word, text.data() + i * sizeof word, sizeof word);
      found[i] = ChannelState::unpacked(word);
    }
    return found;
  }
  std::string_view bytes() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
};
static_assert(sizeof(HeartbeatFrame) == 256);
static_assert(HeartbeatFrame::kStatesBytes <= HeartbeatFrame::kTextBytes);

/// The first thing said on a connection to rank 0.
struct HeartbeatHello {
  static constexpr uint32_t kMagic = 0x53545248;
  uint32_t magic = kMagic;
  int32_t rank = 0;
  std::array<char, 64> token{};

  std::string_view bytes() const { return {reinterpret_cast<const char*>(this), sizeof *this}; }
};
static_assert(sizeof(HeartbeatHello) == 72);

}  // namespace stretto::distributed
