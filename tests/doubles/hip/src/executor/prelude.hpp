// What clang knows when it compiles HIP for a GPU and g++ doesn't, so that the unchanged source of a kernel runs on the CPU.
//
// The entry of a kernel runs all threads of all blocks, one after another, by calling the kernel function, which is put in
// its place. Pointers among the arguments become `Checked` ones: each access must lie in memory that the device may touch.

#define __global__ inline __attribute__((always_inline))
#define __device__
#define __host__
#define __launch_bounds__(...)
#define __restrict__
#define __restrict

namespace polyhalo_double {

typedef __UINTPTR_TYPE__ Address;

// Memory that may be touched.
struct Range {
    Address lo, hi;
};

// The first thing that went wrong in a launch.
struct Fault {
    // 0: nothing, 1: a read and 2: a write of memory that isn't there, 3: an operation whose result C++ doesn't define.
    unsigned kind;
    unsigned block[3], thread[3];
    Address address;
};

struct Launch {
    unsigned grid[3], block[3];
    // Whether the last thread of the last block comes first.
    unsigned backwards;
    // Finds the memory around `bytes` at an address; false if the device may not touch them.
    bool (*reach)(const Launch *, Address, unsigned bytes, bool writes, Range *);
    // The caller's.
    const void *context;
    Fault fault;
};

// An argument: 0 a value, 1 a pointer to what is read, 2 a pointer to what may be written.
struct Argument {
    unsigned bytes, kind;
};

struct Entry {
    const char *name;
    void (*run)(Launch *, void **);
    const Argument *arguments;
    unsigned argument_count, block_threads;
};

// The thread that runs now.
struct Place {
    unsigned grid[3], block_size[3], block[3], thread[3];
};
static thread_local Place place;
static thread_local Launch *launch;
// Where accesses that must not be made end.
static thread_local char nowhere[16];

static __attribute__((noinline, cold)) void fail(unsigned kind, Address address)
{
    if (launch->fault.kind != 0) {
        return;
    }
    launch->fault.kind = kind;
    launch->fault.address = address;
    for (int axis = 0; axis < 3; ++axis) {
        launch->fault.block[axis] = place.block[axis];
        launch->fault.thread[axis] = place.thread[axis];
    }
}

template <class T> struct is_const { static const bool value = false; };
template <class T> struct is_const<const T> { static const bool value = true; };

// A pointer that remembers the memory it was used in last.
template <class T> class Checked {
    T *base;
    mutable Address lo, span;

public:
    Checked(T *base, bool) : base(base), lo(0), span(0) {}

    // Variables of a thread, whose address is handed to another function.
    Checked(T *own) : base(own), lo(0), span(~(Address)0) {}

    template <class I> __attribute__((always_inline)) T &operator[](I index) const
    {
        const Address address = (Address)base + (Address)(long long)index * sizeof(T);
        if (__builtin_expect(address - lo >= span, 0)) {
            if (!reach(address)) {
                return *(T *)nowhere;
            }
        }
        return *(T *)address;
    }

    T &operator*() const { return (*this)[0]; }

private:
    __attribute__((noinline)) bool reach(Address address) const
    {
        const bool writes = !is_const<T>::value;
        Range range;
        if (!launch->reach(launch, address, sizeof(T), writes, &range)) {
            fail(writes ? 2 : 1, address);
            return false;
        }
        lo = range.lo;
        span = range.hi - range.lo - sizeof(T) + 1;
        return true;
    }
};

} // namespace polyhalo_double

// The sizes of the results are clang's.
#define POLYHALO_DOUBLE_AXIS(name, axis) \
    static inline unsigned int __builtin_amdgcn_workgroup_id_##name() { return polyhalo_double::place.block[axis]; } \
    static inline unsigned int __builtin_amdgcn_workitem_id_##name() { return polyhalo_double::place.thread[axis]; } \
    static inline unsigned short __builtin_amdgcn_workgroup_size_##name() \
    { \
        return (unsigned short)polyhalo_double::place.block_size[axis]; \
    } \
    static inline unsigned int __builtin_amdgcn_grid_size_##name() \
    { \
        return polyhalo_double::place.grid[axis] * polyhalo_double::place.block_size[axis]; \
    }
POLYHALO_DOUBLE_AXIS(x, 0)
POLYHALO_DOUBLE_AXIS(y, 1)
POLYHALO_DOUBLE_AXIS(z, 2)

// The device library is the C library. By their assembler names its functions leave theirs free for kernels.
#define POLYHALO_DOUBLE_UNARY(name) \
    double polyhalo_double_##name(double) __asm__(#name); \
    float polyhalo_double_##name##f(float) __asm__(#name "f"); \
    extern "C" inline double __ocml_##name##_f64(double a) { return polyhalo_double_##name(a); } \
    extern "C" inline float __ocml_##name##_f32(float a) { return polyhalo_double_##name##f(a); }
#define POLYHALO_DOUBLE_BINARY(name) \
    double polyhalo_double_##name(double, double) __asm__(#name); \
    float polyhalo_double_##name##f(float, float) __asm__(#name "f"); \
    extern "C" inline double __ocml_##name##_f64(double a, double b) { return polyhalo_double_##name(a, b); } \
    extern "C" inline float __ocml_##name##_f32(float a, float b) { return polyhalo_double_##name##f(a, b); }
POLYHALO_DOUBLE_UNARY(exp)
POLYHALO_DOUBLE_UNARY(exp2)
POLYHALO_DOUBLE_UNARY(log)
POLYHALO_DOUBLE_UNARY(log2)
POLYHALO_DOUBLE_UNARY(log10)
POLYHALO_DOUBLE_UNARY(sin)
POLYHALO_DOUBLE_UNARY(cos)
POLYHALO_DOUBLE_UNARY(tan)
POLYHALO_DOUBLE_UNARY(asin)
POLYHALO_DOUBLE_UNARY(acos)
POLYHALO_DOUBLE_UNARY(atan)
POLYHALO_DOUBLE_UNARY(sinh)
POLYHALO_DOUBLE_UNARY(cosh)
POLYHALO_DOUBLE_UNARY(tanh)
POLYHALO_DOUBLE_UNARY(cbrt)
POLYHALO_DOUBLE_BINARY(pow)
POLYHALO_DOUBLE_BINARY(atan2)
POLYHALO_DOUBLE_BINARY(hypot)

// Called by what g++ puts around operations that C++ leaves undefined.
#define POLYHALO_DOUBLE_UNDEFINED(name) \
    extern "C" __attribute__((cold)) void __ubsan_handle_##name(void *, ...) { polyhalo_double::fail(3, 0); }
POLYHALO_DOUBLE_UNDEFINED(add_overflow)
POLYHALO_DOUBLE_UNDEFINED(sub_overflow)
POLYHALO_DOUBLE_UNDEFINED(mul_overflow)
POLYHALO_DOUBLE_UNDEFINED(negate_overflow)
POLYHALO_DOUBLE_UNDEFINED(divrem_overflow)
POLYHALO_DOUBLE_UNDEFINED(shift_out_of_bounds)
POLYHALO_DOUBLE_UNDEFINED(out_of_bounds)
POLYHALO_DOUBLE_UNDEFINED(float_cast_overflow)

// Before a statement: does it for each thread of the launch.
#define POLYHALO_DOUBLE_THREADS(given) \
    polyhalo_double::launch = given; \
    polyhalo_double::Place &polyhalo_double_place = polyhalo_double::place; \
    for (int axis = 0; axis < 3; ++axis) { \
        polyhalo_double_place.grid[axis] = given->grid[axis]; \
        polyhalo_double_place.block_size[axis] = given->block[axis]; \
    } \
    const bool polyhalo_double_backwards = given->backwards != 0; \
    POLYHALO_DOUBLE_EACH(grid, block, 2) \
    POLYHALO_DOUBLE_EACH(grid, block, 1) \
    POLYHALO_DOUBLE_EACH(grid, block, 0) \
    POLYHALO_DOUBLE_EACH(block_size, thread, 2) \
    POLYHALO_DOUBLE_EACH(block_size, thread, 1) \
    POLYHALO_DOUBLE_EACH(block_size, thread, 0)
#define POLYHALO_DOUBLE_EACH(size, number, axis) \
    for (unsigned polyhalo_double_##number##axis = 0, polyhalo_double_last##number##axis = polyhalo_double_place.size[axis] - 1; \
         polyhalo_double_##number##axis <= polyhalo_double_last##number##axis && \
         (polyhalo_double_place.number[axis] = \
              polyhalo_double_backwards ? polyhalo_double_last##number##axis - polyhalo_double_##number##axis : polyhalo_double_##number##axis, \
          true); \
         ++polyhalo_double_##number##axis)

#pragma GCC diagnostic ignored "-Wattributes"
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
