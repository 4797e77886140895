//! Thin calls: one function per OpenCL call that is used, each giving a `Result`, and handles that free themselves.
//!
//! The handles of `opencl3` panic when a release fails (after a device was lost, for example); these don't.

use std::ffi::{CStr, c_void};
use std::fmt;
use std::ptr;

use opencl3::context::context;
use opencl3::error_codes::{CL_INVALID_VALUE, ClError};
use opencl3::types::{
    CL_FALSE, CL_TRUE, cl_command_queue, cl_context, cl_device_id, cl_event, cl_int, cl_kernel, cl_mem, cl_platform_id,
    cl_program, cl_uint, cl_ulong,
};
use opencl3::{command_queue, device, event, kernel, memory, program};

/// A call that OpenCL refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    /// The name of the call.
    pub(super) call: &'static str,
    /// The code that it gave.
    pub(super) code: cl_int,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Code(self.code))
    }
}

/// An error code that prints as its name and number.
pub(super) struct Code(pub(super) cl_int);

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", ClError(self.0), self.0)
    }
}

/// What a thin call gives.
pub(super) type Called<T> = Result<T, Failure>;

/// Puts the name of the call beside its code.
pub(super) fn named<T, E: Into<ClError>>(call: &'static str, result: Result<T, E>) -> Called<T> {
    result.map_err(|code| Failure { call, code: code.into().0 })
}

/// A platform. It lives as long as the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PlatformId(pub(super) cl_platform_id);

/// A device of a platform, or a part of one. It lives as long as the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DeviceId(pub(super) cl_device_id);

// SAFETY: platform and device ids are names that any thread may use.
unsafe impl Send for PlatformId {}
// SAFETY: as above.
unsafe impl Sync for PlatformId {}
// SAFETY: as above.
unsafe impl Send for DeviceId {}
// SAFETY: as above.
unsafe impl Sync for DeviceId {}

/// Defines a handle that owns one reference to an OpenCL object and gives it back when dropped.
macro_rules! handle {
    ($(#[$doc:meta])* $name:ident, $raw:ty, $release:path) => {
        $(#[$doc])*
        #[derive(Debug)]
        pub(super) struct $name($raw);

        // SAFETY: OpenCL objects belong to no thread (OpenCL 1.2, appendix A.2).
        unsafe impl Send for $name {}

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the handle owns one reference and nobody can use it any more. A failure would only mean a
                // leak.
                let _ = unsafe { $release(self.0) };
            }
        }
    };
}

handle!(
    /// A context: the objects that some devices of a platform share.
    Context, cl_context, context::release_context
);
handle!(
    /// An in-order queue of a device.
    Queue, cl_command_queue, command_queue::release_command_queue
);
handle!(
    /// Memory of a context.
    Memory, cl_mem, memory::release_mem_object
);
handle!(
    /// The completion of a command.
    Event, cl_event, event::release_event
);
handle!(
    /// A program.
    Program, cl_program, program::release_program
);
handle!(
    /// An entry point of a program. It carries its arguments, so only one thread may use it at a time: it isn't `Sync`.
    Kernel, cl_kernel, kernel::release_kernel
);

// SAFETY: all calls except clSetKernelArg may be made from several threads at once (OpenCL 1.2, appendix A.2).
unsafe impl Sync for Context {}
// SAFETY: as above.
unsafe impl Sync for Queue {}
// SAFETY: as above.
unsafe impl Sync for Memory {}
// SAFETY: as above.
unsafe impl Sync for Event {}
// SAFETY: as above.
unsafe impl Sync for Program {}

/// How a device is split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Division {
    /// Into as many parts of so many compute units as it has.
    Equally(u32),
    /// Into parts of these numbers of compute units.
    ByCounts(Vec<u32>),
}

impl DeviceId {
    /// The ways in which the device can be split, by their OpenCL numbers.
    pub(super) fn divisions(self) -> Called<Vec<isize>> {
        let bytes = named("clGetDeviceInfo", device::get_device_data(self.0, device::CL_DEVICE_PARTITION_PROPERTIES))?;
        let (numbers, _) = bytes.as_chunks::<{ size_of::<isize>() }>();
        Ok(numbers.iter().map(|&number| isize::from_ne_bytes(number)).collect())
    }

    /// Splits the device. The parts are never given back: PoCL's threads look at the device of an event that has
    /// happened when everything that a program can wait for is over.
    pub(super) fn split(self, division: &Division) -> Called<Vec<DeviceId>> {
        let mut properties = Vec::new();
        match division {
            Division::Equally(units) => properties.extend([device::CL_DEVICE_PARTITION_EQUALLY, *units as isize]),
            Division::ByCounts(counts) => {
                properties.push(device::CL_DEVICE_PARTITION_BY_COUNTS);
                properties.extend(counts.iter().map(|&units| units as isize));
                properties.push(device::CL_DEVICE_PARTITION_BY_COUNTS_LIST_END);
            }
        }
        properties.push(0);
        let parts = named("clCreateSubDevices", device::create_sub_devices(self.0, &properties))?;
        Ok(parts.into_iter().map(DeviceId).collect())
    }
}

impl Context {
    /// A context for some devices of one platform.
    pub(super) fn new(devices: &[DeviceId]) -> Called<Self> {
        let ids: Vec<_> = devices.iter().map(|device| device.0).collect();
        named("clCreateContext", context::create_context(&ids, ptr::null(), None, ptr::null_mut())).map(Self)
    }

    /// An in-order queue of one of the context's devices; `profiled` if it is to keep the times of its commands.
    pub(super) fn queue(&self, device: DeviceId, profiled: bool) -> Called<Queue> {
        let properties = if profiled { command_queue::CL_QUEUE_PROFILING_ENABLE } else { 0 };
        // The call of OpenCL 1.2: its successor isn't there on every platform.
        // SAFETY: `device` belongs to the context, or the call gives CL_INVALID_DEVICE.
        named("clCreateCommandQueue", unsafe { command_queue::create_command_queue(self.0, device.0, properties) })
            .map(Queue)
    }

    /// Memory of `bytes` bytes, with any contents.
    pub(super) fn memory(&self, bytes: usize) -> Called<Memory> {
        // SAFETY: no host pointer is given, and the flags say so.
        named("clCreateBuffer", unsafe {
            memory::create_buffer(self.0, memory::CL_MEM_READ_WRITE, bytes, ptr::null_mut())
        })
        .map(Memory)
    }

    /// Memory of `bytes` bytes on the host, as the driver likes it best for transfers.
    pub(super) fn host_memory(&self, bytes: usize) -> Called<Memory> {
        let flags = memory::CL_MEM_READ_WRITE | memory::CL_MEM_ALLOC_HOST_PTR;
        // SAFETY: no host pointer is given, and the flags say so.
        named("clCreateBuffer", unsafe { memory::create_buffer(self.0, flags, bytes, ptr::null_mut()) }).map(Memory)
    }

    /// A program from OpenCL C.
    pub(super) fn program_from_source(&self, source: &str) -> Called<Program> {
        named("clCreateProgramWithSource", program::create_program_with_source(self.0, &[source])).map(Program)
    }

    /// A program from SPIR-V. The device must take it (OpenCL 2.1): older platforms have no such call.
    pub(super) fn program_from_spirv(&self, module: &[u8]) -> Called<Program> {
        named("clCreateProgramWithIL", program::create_program_with_il(self.0, module)).map(Program)
    }
}

impl Program {
    /// Compiles and links for one device.
    pub(super) fn build(&self, device: DeviceId, options: &CStr) -> Called<()> {
        named("clBuildProgram", program::build_program(self.0, &[device.0], options, None, ptr::null_mut()))
    }

    /// What the vendor's compiler said; empty when it said nothing.
    pub(super) fn build_log(&self, device: DeviceId) -> Called<String> {
        let log = program::get_program_build_data(self.0, device.0, program::CL_PROGRAM_BUILD_LOG);
        named("clGetProgramBuildInfo", log).map(|bytes| text(&bytes))
    }

    /// One of the entry points.
    pub(super) fn kernel(&self, name: &CStr) -> Called<Kernel> {
        named("clCreateKernel", kernel::create_kernel(self.0, name)).map(Kernel)
    }
}

impl Kernel {
    /// The number of arguments.
    pub(super) fn arguments(&self) -> Called<u32> {
        named("clGetKernelInfo", kernel::get_kernel_info(self.0, kernel::CL_KERNEL_NUM_ARGS)).map(u32::from)
    }

    /// The largest work-group that this device runs the kernel with.
    pub(super) fn largest_group(&self, device: DeviceId) -> Called<usize> {
        let size = kernel::get_kernel_work_group_info(self.0, device.0, kernel::CL_KERNEL_WORK_GROUP_SIZE);
        named("clGetKernelWorkGroupInfo", size).map(usize::from)
    }

    /// Sets an argument to a number.
    pub(super) fn set_number<T: Number>(&self, index: usize, value: T) -> Called<()> {
        // SAFETY: the pointer is to `size_of::<T>()` readable bytes, which the call copies.
        unsafe { self.set(index, size_of::<T>(), (&raw const value).cast()) }
    }

    /// Sets an argument to a buffer.
    pub(super) fn set_memory(&self, index: usize, memory: &Memory) -> Called<()> {
        // SAFETY: a buffer argument is given by a pointer to its handle, which the call copies.
        unsafe { self.set(index, size_of::<cl_mem>(), (&raw const memory.0).cast()) }
    }

    /// # Safety
    /// `value` must point to `bytes` readable bytes.
    unsafe fn set(&self, index: usize, bytes: usize, value: *const c_void) -> Called<()> {
        let index = cl_uint::try_from(index).map_err(|_| Failure { call: "clSetKernelArg", code: CL_INVALID_VALUE })?;
        // SAFETY: the caller's promise; OpenCL compares `bytes` with the size of the parameter.
        named("clSetKernelArg", unsafe { kernel::set_kernel_arg(self.0, index, bytes, value) })
    }
}

/// The types of a kernel's scalar parameters.
pub(super) trait Number: Copy {}
impl Number for u64 {}
impl Number for i64 {}
impl Number for u32 {}
impl Number for i32 {}
/// OpenCL's `int2`.
impl Number for [i32; 2] {}

/// A box of bytes as the calls for boxes want it: bytes along the first axis, rows and planes along the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rect {
    /// Where the first row starts.
    pub(super) offset: usize,
    /// From row to row.
    pub(super) row_pitch: usize,
    /// From plane to plane; a multiple of `row_pitch` that holds all rows.
    pub(super) plane_pitch: usize,
}

impl Rect {
    /// Rows and planes of `shape` (bytes, rows, planes) without gaps.
    pub(super) fn packed(shape: [usize; 3]) -> Self {
        Self { offset: 0, row_pitch: shape[0], plane_pitch: shape[0] * shape[1] }
    }

    /// The offset as bytes, rows and planes: PoCL's test for overlap goes wrong when all of it is given in bytes.
    fn origin(&self) -> [usize; 3] {
        let within_plane = self.offset % self.plane_pitch;
        [within_plane % self.row_pitch, within_plane / self.row_pitch, self.offset / self.plane_pitch]
    }
}

impl Queue {
    /// Hands what is enqueued to the device.
    pub(super) fn flush(&self) -> Called<()> {
        named("clFlush", command_queue::flush(self.0))
    }

    /// Waits until all that is enqueued has finished, well or not.
    pub(super) fn finish(&self) -> Called<()> {
        named("clFinish", command_queue::finish(self.0))
    }

    /// Enqueues zeroes over the first `bytes` bytes of a buffer.
    pub(super) fn zero(&self, to: &Memory, bytes: usize) -> Called<Event> {
        // CPU runtimes fill at the pace of the pattern: 1 to 2 GB/s by single bytes, ten times that by the longest
        // pattern there is.
        const PATTERN: [u8; 128] = [0; 128];
        let fill = |pattern: usize, offset: usize, bytes: usize| {
            // SAFETY: the pattern is readable, and the call copies it; OpenCL checks the size of the buffer.
            named("clEnqueueFillBuffer", unsafe {
                let zeroes = PATTERN.as_ptr().cast();
                command_queue::enqueue_fill_buffer(self.0, to.0, zeroes, pattern, offset, bytes, 0, ptr::null())
            })
            .map(Event)
        };
        let body = bytes / PATTERN.len() * PATTERN.len();
        if body == bytes {
            return fill(PATTERN.len(), 0, bytes);
        }
        if body > 0 {
            fill(PATTERN.len(), 0, body)?;
        }
        fill(1, body, bytes - body)
    }

    /// Enqueues the copy of packed rows into a box; with `wait`, also waits for it.
    ///
    /// # Safety
    /// `data` must hold a box of `shape` (bytes, rows, planes), and without `wait` nobody may change or free it before
    /// the event.
    pub(super) unsafe fn write(
        &self,
        to: &Memory,
        rect: Rect,
        shape: [usize; 3],
        data: *const u8,
        wait: bool,
    ) -> Called<Event> {
        let blocking = if wait { CL_TRUE } else { CL_FALSE };
        let host = Rect::packed(shape);
        // SAFETY: the caller's promise; OpenCL checks the box against the size of the buffer.
        named("clEnqueueWriteBufferRect", unsafe {
            command_queue::enqueue_write_buffer_rect(
                self.0,
                to.0,
                blocking,
                rect.origin().as_ptr(),
                host.origin().as_ptr(),
                shape.as_ptr(),
                rect.row_pitch,
                rect.plane_pitch,
                host.row_pitch,
                host.plane_pitch,
                data.cast_mut().cast(),
                0,
                ptr::null(),
            )
        })
        .map(Event)
    }

    /// Enqueues the copy of a box into packed rows; with `wait`, also waits for it.
    ///
    /// # Safety
    /// `data` must hold a box of `shape` (bytes, rows, planes), and without `wait` nobody may use or free it before the
    /// event.
    pub(super) unsafe fn read(
        &self,
        from: &Memory,
        rect: Rect,
        shape: [usize; 3],
        data: *mut u8,
        wait: bool,
    ) -> Called<Event> {
        let blocking = if wait { CL_TRUE } else { CL_FALSE };
        let host = Rect::packed(shape);
        // SAFETY: the caller's promise; OpenCL checks the box against the size of the buffer.
        named("clEnqueueReadBufferRect", unsafe {
            command_queue::enqueue_read_buffer_rect(
                self.0,
                from.0,
                blocking,
                rect.origin().as_ptr(),
                host.origin().as_ptr(),
                shape.as_ptr(),
                rect.row_pitch,
                rect.plane_pitch,
                host.row_pitch,
                host.plane_pitch,
                data.cast(),
                0,
                ptr::null(),
            )
        })
        .map(Event)
    }

    /// Enqueues the copy of a box of `shape` (bytes, rows, planes) between two buffers of one context.
    pub(super) fn copy(&self, from: (&Memory, Rect), to: (&Memory, Rect), shape: [usize; 3]) -> Called<Event> {
        let ((source, here), (target, there)) = (from, to);
        // SAFETY: OpenCL checks both boxes against the sizes of the buffers.
        named("clEnqueueCopyBufferRect", unsafe {
            command_queue::enqueue_copy_buffer_rect(
                self.0,
                source.0,
                target.0,
                here.origin().as_ptr(),
                there.origin().as_ptr(),
                shape.as_ptr(),
                here.row_pitch,
                here.plane_pitch,
                there.row_pitch,
                there.plane_pitch,
                0,
                ptr::null(),
            )
        })
        .map(Event)
    }

    /// Enqueues a kernel with the arguments that it has now.
    ///
    /// # Safety
    /// All arguments must be set, and the kernel must stay inside its buffers with them.
    pub(super) unsafe fn launch(&self, kernel: &Kernel, global: &[usize], local: &[usize]) -> Called<Event> {
        assert_eq!(global.len(), local.len(), "one local size per global size");
        // SAFETY: the caller's promise; both lists have as many sizes as the call is told.
        named("clEnqueueNDRangeKernel", unsafe {
            command_queue::enqueue_nd_range_kernel(
                self.0,
                kernel.0,
                global.len() as cl_uint,
                ptr::null(),
                global.as_ptr(),
                local.as_ptr(),
                0,
                ptr::null(),
            )
        })
        .map(Event)
    }

    /// Gives the host the memory at an address, which stays the same until [`Queue::unmap`]; waits for the queue.
    pub(super) fn map(&self, memory: &Memory, bytes: usize) -> Called<*mut u8> {
        let mut start = ptr::null_mut();
        let flags = memory::CL_MAP_READ | memory::CL_MAP_WRITE;
        // SAFETY: OpenCL checks the size of the buffer; the call blocks.
        named("clEnqueueMapBuffer", unsafe {
            let (buffer, wait) = (memory.0, CL_TRUE);
            command_queue::enqueue_map_buffer(self.0, buffer, wait, flags, 0, bytes, &mut start, 0, ptr::null())
        })
        .map(Event)?;
        Ok(start.cast())
    }

    /// Takes memory back from the host.
    ///
    /// # Safety
    /// Nobody may use the address any more.
    pub(super) unsafe fn unmap(&self, memory: &Memory, start: *mut u8) -> Called<Event> {
        // SAFETY: the caller's promise; an address that isn't a mapping of the memory gives CL_INVALID_VALUE.
        named("clEnqueueUnmapMemObject", unsafe {
            command_queue::enqueue_unmap_mem_object(self.0, memory.0, start.cast(), 0, ptr::null())
        })
        .map(Event)
    }

    /// The moment after all that is enqueued so far.
    pub(super) fn marker(&self) -> Called<Event> {
        // SAFETY: an empty list of events is a null pointer.
        named("clEnqueueMarkerWithWaitList", unsafe {
            command_queue::enqueue_marker_with_wait_list(self.0, 0, ptr::null())
        })
        .map(Event)
    }

    /// What is enqueued from now on starts after `event`.
    pub(super) fn wait_for(&self, event: &Event) -> Called<Event> {
        // SAFETY: the list holds one event, which is alive.
        named("clEnqueueBarrierWithWaitList", unsafe {
            command_queue::enqueue_barrier_with_wait_list(self.0, 1, &raw const event.0)
        })
        .map(Event)
    }
}

impl Event {
    /// Waits for the command; a failure if it ended badly.
    pub(super) fn wait(&self) -> Called<()> {
        named("clWaitForEvents", event::wait_for_events(&[self.0]))
    }

    /// Whether the command has finished; a failure if it ended badly.
    pub(super) fn finished(&self, call: &'static str) -> Called<bool> {
        let status = event::get_event_info(self.0, event::CL_EVENT_COMMAND_EXECUTION_STATUS);
        let status = cl_int::from(named("clGetEventInfo", status)?);
        if status < 0 { Err(Failure { call, code: status }) } else { Ok(status == event::CL_COMPLETE) }
    }

    /// When a finished command of a profiled queue started and ended, in nanoseconds of the device's clock.
    pub(super) fn times(&self) -> Called<[cl_ulong; 2]> {
        let time = |what| {
            let bytes = named("clGetEventProfilingInfo", event::get_event_profiling_data(self.0, what))?;
            let bytes =
                bytes.try_into().map_err(|_| Failure { call: "clGetEventProfilingInfo", code: CL_INVALID_VALUE })?;
            Ok(cl_ulong::from_ne_bytes(bytes))
        };
        Ok([time(event::CL_PROFILING_COMMAND_START)?, time(event::CL_PROFILING_COMMAND_END)?])
    }
}

/// A text from a driver, without the zeros and spaces around it.
pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_matches(|c: char| c == '\0' || c.is_whitespace()).to_owned()
}
