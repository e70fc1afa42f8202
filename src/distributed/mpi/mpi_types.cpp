#include <array>
#include <stdexcept>

#include "distributed/half.h"
#include "distributed/mpi/mpi_transport.h"

namespace stretto::distributed {
namespace {

// MPI's signature: both pointers are to `length` elements, the second takes the sum.
void sum_bf16(void* add, void* sum, int* length, MPI_Datatype* /*type*/) {
  add_bf16(static_cast<uint16_t*>(sum), static_cast<const uint16_t*>(add), *length);
}

void sum_f16(void* add, void* sum, int* length, MPI_Datatype* /*type*/) {
  add_f16(static_cast<uint16_t*>(sum), static_cast<const uint16_t*>(add), *length);
}

MPI_Op make_op(MPI_User_function* function) {
  MPI_Op op = MPI_OP_NULL;
  if (MPI_Op_create(function, /*commute=*/1, &op) != MPI_SUCCESS) {
    throw std::runtime_error("[mpi] MPI_Op_create failed");
  }
  return op;
}

}  // namespace

MPI_Datatype mpi_type(Element element) {
  switch (element) {
    case Element::kF32:
      return MPI_FLOAT;
    case Element::kF64:
      return MPI_DOUBLE;
    case Element::kBf16:
    case Element::kF16:
      return MPI_UINT16_T;
    case Element::kI64:
      return MPI_INT64_T;
    case Element::kByte:
      return MPI_UINT8_T;
  }
  throw std::invalid_argument("[mpi] unknown element type");
}

MPI_Op mpi_sum(Element element) {
  static const MPI_Op bf16 = make_op(&sum_bf16), f16 = make_op(&sum_f16);
  if (element == Element::kBf16) return bf16;
  return element == Element::kF16 ? f16 : MPI_SUM;
}

std::string mpi_error(int code) {
  std::array<char, MPI_MAX_ERROR_STRING> text{};
  int length = 0;
  MPI_Error_string(code, text.data(), &length);
  return {text.data(), static_cast<size_t>(length)};
}

}  // namespace stretto::distributed
