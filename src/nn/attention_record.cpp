#include "nn/attention_record.h"

#include <utility>

namespace stretto::nn {
namespace {

thread_local AttentionRows* recorded_attention = nullptr;

}  // namespace

AttentionRecordScope::AttentionRecordScope(AttentionRows& into)
    : before_(std::exchange(recorded_attention, &into)) {}

AttentionRecordScope::~AttentionRecordScope() {
  recorded_attention = before_;
}

AttentionRows* AttentionRecordScope::current() {
  return recorded_attention;
}

}  // namespace stretto::nn
