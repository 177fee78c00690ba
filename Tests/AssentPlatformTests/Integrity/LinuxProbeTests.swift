#if os(Linux)
import AssentCore
import AssentPeers
import Foundation
import TestSupport
import Testing

@testable import AssentPlatform

@Suite("Linux's probes")
struct LinuxProbeTests {
    private let directory: TemporaryDirectory

    init() throws { directory = try TemporaryDirectory() }

    private func file(_ text: String) throws -> String {
        let url = directory.url.appending(path: UUID().uuidString)
        try Data(text.utf8).write(to: url)
        return url.path
    }

    @Test("This process has nothing of which the probe of debuggers could speak, and a traced one has")
    func debugger() throws {
        #expect(DebuggerProbe().finding() == nil)
        let head = "Name:\ttest\nUmask:\t0022\nPid:\t7\n"
        #expect(DebuggerProbe(status: try file(head + "TracerPid:\t0\nUid:\t0\n")).finding() == nil)
        for line in ["TracerPid:\t1\n", "TracerPid:\t4194304\n", "TracerPid:\t00\n", "TracerPid:\t\n"] {
            #expect(DebuggerProbe(status: try file(head + line)).finding() != nil, "\(line)")
        }
    }

    @Test("What cannot be read is a finding: no file, no line, a line that is cut or too far away")
    func unreadable() throws {
        #expect(DebuggerProbe(status: directory.url.appending(path: "none").path).finding() != nil)
        let far = String(repeating: "A:\t1\n", count: 400) + "TracerPid:\t0\n"
        for text in ["", "Name:\ttest\n", "TracerPid:\t0", "xTracerPid:\t0\n", far] {
            #expect(DebuggerProbe(status: try file(text)).finding() != nil, "\(text.prefix(20))")
        }
        let long = try file(String(repeating: "#", count: 4096))
        #expect(PreloadProbe(file: long, variable: { _ in nil }).finding() != nil)
        #expect(RootedProbe(executable: directory.url.appending(path: "none").path).finding() != nil)
    }

    @Test("The status is opened once and read each time; where its number stands for another file, it is opened anew")
    func kept() throws {
        let path = try file("Pid:\t7\nTracerPid:\t0\n")
        let other = try file("Pid:\t8\nTracerPid:\t0\n")
        var probe: DebuggerProbe? = DebuggerProbe(status: path)
        #expect(probe?.finding() == nil)
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
        try handle.write(contentsOf: Data("Pid:\t7\nTracerPid:\t5\n".utf8))
        try handle.close()
        let traced = "Another program traces this process."
        #expect(probe?.finding() == traced)
        // Nobody could open it now.
        try FileManager.default.moveItem(atPath: path, toPath: path + ".away")
        #expect(probe?.finding() == traced)
        try FileManager.default.moveItem(atPath: path + ".away", toPath: path)
        let number = try descriptor(of: path)
        let opened = open(other, O_RDONLY | O_CLOEXEC)
        #expect(dup2(opened, number) == number)
        close(opened)
        #expect(probe?.finding() == traced, "the other file says that nobody traces another process")
        // The number is another's then, who goes on with it.
        probe = nil
        var found = stat()
        let isOpen = fstat(number, &found) == 0
        #expect(isOpen)
        close(number)
    }

    /// The number under which this process has a file open.
    private func descriptor(of path: String) throws -> Int32 {
        let numbers = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
        let found = numbers.first { number in
            let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\(number)")
            return target.map { $0.hasSuffix(URL(fileURLWithPath: path).lastPathComponent) } ?? false
        }
        return try #require(found.flatMap { Int32($0) })
    }

    @Test("Libraries in a variable or in the file are found, unless each of them is allowed by its whole name")
    func preload() throws {
        let none = directory.url.appending(path: "none").path
        let cases: [(value: String, file: String?, isFound: Bool)] = [
            ("", nil, false), (" : ", nil, false), ("/a.so", nil, false), ("/a.so:/a.so /a.so", nil, false),
            ("/b.so", nil, true), ("/a.so:/b.so", nil, true), ("/a.so\t/b.so", nil, true), ("a.so", nil, true),
            ("", "", false), ("", "# /b.so\n/a.so # /b.so\n", false), ("", "/a.so\n/b.so\n", true),
            ("", "#\n/b.so", true),
        ]
        for name in ["LD_PRELOAD", "LD_AUDIT"] {
            for (value, text, isFound) in cases {
                let path = try text.map(file) ?? none
                let probe = PreloadProbe(allowing: ["/a.so"], file: path) { $0 == name ? value : nil }
                #expect((probe.finding() != nil) == isFound, "\(value) \(text ?? "-")")
            }
        }
    }

    @Test("A program that has become root, and a program or vault that everybody may write, are found")
    func rooted() throws {
        let program = try file("program")
        let vault = directory.url.appending(path: "vault")
        func finding(_ real: UInt32 = 1000, _ effective: UInt32 = 1000) -> String? {
            RootedProbe(vaults: [vault.path], executable: program, users: { (real, effective) }).finding()
        }
        #expect(finding() == nil, "a vault that is not there")
        try FileManager.default.createDirectory(at: vault, withIntermediateDirectories: false)
        try set(0o700, vault.path)
        #expect(finding() == nil && finding(0, 0) == nil && finding(0, 1000) == nil)
        #expect(finding(1000, 0) != nil)
        try set(0o777, vault.path)
        #expect(finding() != nil)
        try set(0o770, vault.path)
        #expect(finding() == nil, "passes: a group that may write")
        try set(0o775, program)
        #expect(finding() == nil, "passes: a program that a group may write")
        try set(0o757, program)
        #expect(finding() != nil)
    }

    @Test("The program's file stays open, and what others may do with it is looked at each time")
    func keptProgram() throws {
        let path = try file("program")
        let probe = RootedProbe(executable: path)
        #expect(probe.finding() == nil)
        try set(0o757, path)
        #expect(probe.finding() != nil)
        try set(0o755, path)
        #expect(probe.finding() == nil)
        // Where its number stands for another file, that of the path decides.
        let other = try file("other")
        try set(0o757, other)
        let number = try descriptor(of: path)
        let opened = open(other, O_RDONLY | O_CLOEXEC)
        #expect(dup2(opened, number) == number)
        close(opened)
        #expect(probe.finding() == nil)
        try set(0o757, path)
        #expect(probe.finding() != nil)
        close(number)
    }

    /// How often this thread has read from a file, as Linux counts it.
    private func reads() throws -> Int {
        let text = try String(contentsOfFile: "/proc/thread-self/io", encoding: .utf8)
        let line = try #require(text.split(separator: "\n").first { $0.hasPrefix("syscr: ") })
        return try #require(Int(line.dropFirst("syscr: ".count)))
    }

    /// How often a probe reads; the first time, what it calls may read more.
    private func reads(of probe: any IntegrityProbe) throws -> Int {
        var fewest = Int.max
        for _ in 0..<4 {
            let (first, second) = (try reads(), try reads())
            _ = probe.finding()
            // To count reads, too.
            fewest = min(fewest, try reads() - second - (second - first))
        }
        return fewest
    }

    @Test("A probe costs one read, and none where it has no file to read")
    func cost() throws {
        let list = try file("# none\n")
        let none = directory.url.appending(path: "none").path
        #expect(try reads(of: DebuggerProbe()) == 1)
        #expect(try reads(of: PreloadProbe(file: list, variable: { _ in nil })) == 1)
        #expect(try reads(of: PreloadProbe(file: none, variable: { _ in nil })) == 0)
        #expect(try reads(of: RootedProbe(vaults: [directory.url.path])) == 0)
        // The control: a status that is read a second time would be counted.
        #expect(try reads(of: TwiceProbe()) == 2)
    }

    @Test("Passes: a library that takes its name out of the environment")
    func hidden() {
        let environment = Locked(["LD_PRELOAD": "/b.so"])
        let probe = PreloadProbe(file: "/nowhere/ld.so.preload") { name in environment.withLock { $0[name] } }
        #expect(probe.finding() != nil)
        environment.withLock { $0["LD_PRELOAD"] = nil }
        #expect(probe.finding() == nil)
    }

    @Test("Passes: a tracer of another process, to which the app gives its work")
    func helper() throws {
        let tracer = try SpawnedProcess(BuiltProgram.beside("CTracer").path, ["/bin/sleep", "3600"], errors: .pipe)
        let said = String(decoding: try #require(tracer.errors).availableData, as: UTF8.self)
        let helper = try #require(Int32(said.trimmingCharacters(in: .whitespacesAndNewlines)))
        #expect(DebuggerProbe(status: "/proc/\(helper)/status").finding() != nil)
        #expect(DebuggerProbe().finding() == nil)
    }

    private func set(_ mode: Int, _ path: String) throws {
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: path)
    }
}

/// A probe that looks twice.
private struct TwiceProbe: IntegrityProbe {
    let kind = IntegrityKind.debugger
    private let probe = DebuggerProbe()

    func finding() -> String? { probe.finding() ?? probe.finding() }
}
#endif
