#if os(Linux)
import AssentCore
import AssentPeers
import Foundation
import IntegrityTesting
import TestSupport
import Testing

@Suite("Probes of a real process")
struct ProbedProcessTests {
    /// The lines of an agent: its name, whether it was refused, how many calls have left.
    private func lines(
        _ words: [String], traced: Bool = false, environment: [String: String] = [:]
    ) throws -> [String] {
        let directory = try TemporaryDirectory()
        let agent = BuiltProgram.beside("IntegrityAgent").path
        var arguments = words
        arguments.insert(directory.url.path, at: 2)
        var variables = ProcessInfo.processInfo.environment
        variables["LD_PRELOAD"] = nil
        variables.merge(environment) { $1 }
        let ended = try FinishedProcess.run(
            traced ? BuiltProgram.beside("CTracer").path : agent, (traced ? [agent] : []) + arguments,
            environment: variables)
        try #require(ended.status == 0, "\(ended.status) \(ended.complaints)")
        return ended.text.split(separator: "\n").map(String.init)
    }

    private let allRefused = EachFetch.Kind.allCases.map { "\($0.rawValue) refused 0" }

    @Test("4 Under a tracer each kind of fetch is refused before a byte leaves; without one none is")
    func tracer() throws {
        #expect(try lines(["refuse", "off"], traced: true) == allRefused)
        let free = try lines(["refuse", "off"])
        #expect(free.count == allRefused.count && free.allSatisfy { $0.contains(" passed ") })
        #expect(free.last?.hasSuffix(" 0") == false)
    }

    @Test("5 Under a tracer whose finding is reported, or not looked for, calls leave", arguments: ["report", "off"])
    func milder(control: String) throws {
        let lines = try lines([control, "off"], traced: true)
        #expect(lines.count == allRefused.count && lines.allSatisfy { $0.contains(" passed ") })
    }

    /// A library that every process of this machine has in it anyway.
    private static let library = "libm.so.6"

    @Test("4 A library in LD_PRELOAD refuses each kind of fetch, unless the app allows it by its name")
    func preload() throws {
        let environment = ["LD_PRELOAD": Self.library]
        #expect(try lines(["off", "refuse"], environment: environment) == allRefused)
        for words in [["off", "refuse", Self.library], ["off", "report"], ["off", "off"]] {
            let lines = try lines(words, environment: environment)
            #expect(lines.count == allRefused.count && lines.allSatisfy { $0.contains(" passed ") }, "\(words)")
        }
    }
}
#endif
