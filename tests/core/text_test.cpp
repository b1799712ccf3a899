#include "core/text.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>

namespace krigtune::text_test {

TEST(NearestName, FindsMisspellings) {
  const std::vector<std::string> names = {"micro_batch", "zero_stage", "overlap_comm"};
  EXPECT_EQ(nearest_name("micro_bacth", names), "micro_batch");  // a swap is one edit
  EXPECT_EQ(nearest_name("microbatch", names), "micro_batch");
  EXPECT_EQ(nearest_name("overlap_com", names), "overlap_comm");
  EXPECT_EQ(nearest_name("learning_rate", names), "");
  EXPECT_EQ(nearest_name("x", {}), "");
  EXPECT_EQ(nearest_name("fp61", {"bf16", "fp16", "fp32"}), "fp16");
  EXPECT_EQ(nearest_name("fp8", {"bf16", "fp16", "fp32"}), "") << "two edits of three letters are another word";
  EXPECT_EQ(nearest_name("okay", {"oom", "ok"}), "ok");
  EXPECT_EQ(nearest_name("micro", {"macro_batch", "micro_batch"}), "micro_batch");
  EXPECT_EQ(nearest_name("", {"a", "bcd"}), "a");
  EXPECT_EQ(nearest_name("xml", {"table", "md", "csv", "json"}), "");
}

TEST(Suggestion, NamesTheNearestOrAll) {
  EXPECT_EQ(suggestion("stesp", {"steps", "scale"}), "did you mean 'steps'?");
  EXPECT_EQ(suggestion("llama2-13b", {"llama-13b", "llama-2-7b", "llama-2-13b"}), "did you mean 'llama-2-13b'?");
  EXPECT_EQ(suggestion("h100", {"a100-80gb", "h100-80gb-pcie", "h100-80gb", "h100-96gb"}),
            "did you mean 'h100-80gb', 'h100-96gb' or 'h100-80gb-pcie'?");
  EXPECT_EQ(suggestion("ib-400", {"nvlink4", "ib-hdr-200", "ib-ndr-400"}), "did you mean 'ib-ndr-400'?");
  EXPECT_EQ(suggestion("wavelength", {"steps", "scale"}), "known: steps, scale");
}

TEST(Text, JoinsAndLowers) {
  EXPECT_EQ(join({"a", "b", "c"}, ", "), "a, b, c");
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(lower_case("IB-HDR-200 \xC3\x84"), "ib-hdr-200 \xC3\x84");
}

TEST(NumberText, WritesIntegersWithoutExponent) {
  EXPECT_EQ(number_text(0.0), "0");
  EXPECT_EQ(number_text(500'000'000.0), "500000000");
  EXPECT_EQ(number_text(-12.0), "-12");
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(1e300), "1e+300");
}

TEST(NumberText, ReadsBackAsTheSameDouble) {
  EXPECT_TRUE(rc::check("strtod(number_text(x)) == x", [](double x) {
    RC_ASSERT(std::strtod(number_text(x).c_str(), nullptr) == x);
    RC_ASSERT(std::strtod(number_text(x * 1e12).c_str(), nullptr) == x * 1e12);
  }));
}

TEST(CountText, HasThreeDigitsAndTheNextUnitWhereTheyRoundUp) {
  EXPECT_EQ(count_text(4096), "4096");
  EXPECT_EQ(count_text(124e6), "124 million");
  EXPECT_EQ(count_text(999.6e6), "1 billion");
  EXPECT_EQ(count_text(8.03e9), "8.03 billion");
  EXPECT_EQ(count_text(3e11), "300 billion");
  EXPECT_EQ(count_text(1.043e12), "1.04 trillion");
}

TEST(Counted, SaysOneAndMany) {
  EXPECT_EQ(counted(0, "trial"), "0 trials");
  EXPECT_EQ(counted(1, "data-parallel rank"), "1 data-parallel rank");
  EXPECT_EQ(counted(2, "GPU"), "2 GPUs");
}

}  // namespace krigtune::text_test
