#include "data/pairs/pair_faults.h"

#include "data/pairs/parallel_input.h"

namespace stretto::data {

template <class Call>
void PairFaults::on_its_side(const Call& call) const {
  try {
    call();
  } catch (const Error& error) {
    if (first_ == Side::kTarget) throw TargetError(error);
    if (first_ == Side::kSecondSource) throw SecondSourceError(error);
    throw;
  }
}

void PairFaults::add(const PairFault& fault) {
  if (!first_) first_ = fault.side();
  on_its_side([&] { bad_.add(fault); });
}

void PairFaults::end_input() {
  on_its_side([&] { bad_.end_file(); });
  first_.reset();
}

}  // namespace stretto::data
