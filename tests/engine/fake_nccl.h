#pragma once

// What a test asks of the library that takes the place of NCCL (fake_nccl.cpp).
extern "C" {
/// The calls so far, a line each, without those that only ask.
const char* fake_nccl_calls();
/// The version that it claims to be, and without which newer functions fail: 22809.
void fake_nccl_is(int version);
}
