#if os(Linux)
/// What Linux says of a process in its file `status`, as far as the probe of debuggers wants to know it.
struct ProcessStatus {
    /// The process's number; `nil` when that is not said.
    let process: Int?
    /// Whether another program traces the process.
    let isTraced: Bool

    /// More than what stands before the last line that is read, and that line. The process's name, which stands first,
    /// is short.
    static let limit = 1024

    /// Reads the beginning of the file; `nil` when it does not say who traces the process, or when the line that says
    /// it may go on behind the last byte.
    init?(_ bytes: UnsafeRawBufferPointer) {
        var number: Int?
        var rest = bytes[...]
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            let line = rest[..<end]
            if let tracer = Self.value(of: "TracerPid:\t", in: line) {
                process = number
                isTraced = !tracer.elementsEqual("0".utf8)
                return
            }
            if let value = Self.value(of: "Pid:\t", in: line) { number = Int(String(decoding: value, as: UTF8.self)) }
            rest = rest[(end + 1)...]
        }
        return nil
    }

    private typealias Line = Slice<UnsafeRawBufferPointer>

    private static func value(of name: String, in line: Line) -> Line? {
        line.starts(with: name.utf8) ? line.dropFirst(name.utf8.count) : nil
    }
}
#endif
