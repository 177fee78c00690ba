#if os(Linux)
package import AssentCore

/// Finds a program that traces this process: `TracerPid` of `/proc/self/status` is its number, and 0 for none.
package struct DebuggerProbe: IntegrityProbe {
    package let kind = IntegrityKind.debugger
    private let status: String

    /// More than what stands before the line and the line itself. The process's name, which stands first, is short.
    private static let limit = 1024

    /// - Parameter status: the file.
    package init(status: String = "/proc/self/status") { self.status = status }

    package func finding() -> String? {
        guard case .bytes(let bytes, _) = BoundedFile(status, upTo: Self.limit), let tracer = Self.tracer(in: bytes)
        else { return "It cannot be seen whether another program traces this process." }
        return tracer.elementsEqual("0".utf8) ? nil : "Another program traces this process."
    }

    /// The text after `TracerPid:`; `nil` without such a line, or when it may go on behind the last byte.
    private static func tracer(in bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        let name = Array("TracerPid:\t".utf8)
        var rest = bytes
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            let line = rest[..<end]
            if line.starts(with: name) { return line.dropFirst(name.count) }
            rest = rest[(end + 1)...]
        }
        return nil
    }
}
#endif
