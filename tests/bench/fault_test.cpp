#include "programs/bench/fault.h"

#include <gtest/gtest.h>

#include <new>

#include "core/error.h"

namespace krigtune::fault_test {

TEST(Fault, IsReadFromItsText) {
  const bench::Fault fault = bench::fault_from("bad_alloc:1:5");
  EXPECT_EQ(fault.kind, bench::Fault::Kind::kBadAlloc);
  EXPECT_EQ(fault.rank, 1);
  EXPECT_EQ(fault.step, 5);
  EXPECT_EQ(bench::fault_from("hang:0:0").kind, bench::Fault::Kind::kHang);
  EXPECT_EQ(bench::fault_from("abort:0:0").kind, bench::Fault::Kind::kAbort);
  EXPECT_EQ(bench::fault_from("kill:0:0").kind, bench::Fault::Kind::kKill);
  for (const char* text : {"", "hang", "hang:1", "sleep:1:5", "hang:one:5", "hang:1:-5", "hang:1:5:7"}) {
    EXPECT_THROW(bench::fault_from(text), UserError) << text;
  }
}

TEST(Fault, HappensBeforeItsStepAlone) {
  const bench::Fault fault = bench::fault_from("bad_alloc:1:5");
  EXPECT_NO_THROW(bench::inject(fault, 4));
  EXPECT_THROW(bench::inject(fault, 5), std::bad_alloc);
  EXPECT_NO_THROW(bench::inject(fault, 6));
}

}  // namespace krigtune::fault_test
