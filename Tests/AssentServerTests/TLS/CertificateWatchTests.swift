import AssentCore
import AssentTesting
import Foundation
import InMemoryLogging
import Logging
import ServiceLifecycle
import Testing

@testable import AssentServer

@Suite("A certificate that expires while the server runs")
struct CertificateWatchTests {
    private let clock = ManualClock()
    private let log = InMemoryLogHandler()
    private let directory: String

    init() throws { directory = try ServerFixture.makeDirectory() }

    /// The operator's own certificate.
    private func files(days: Int = 60) throws -> (certificate: String, privateKey: String) {
        let made = try GeneratedCertificates.make(now: clock.now, days: days)
        let (certificate, privateKey) = ("\(directory)/chain.pem", "\(directory)/key.pem")
        try Data(made.chainPEM.utf8).write(to: URL(fileURLWithPath: certificate))
        try PrivateFile.create(privateKey, made.privateKeyPEM.revealBytes())
        return (certificate, privateKey)
    }

    private func watch(isGenerated: Bool, days: Int = 60) throws -> CertificateWatch {
        let files = try files(days: days)
        let credentials = try ServerCredentials.files(
            certificate: files.certificate, privateKey: files.privateKey, in: "\(directory)/assent.yaml")
        return try CertificateWatch(
            credentials, isGenerated: isGenerated, clock: clock, logger: Logger(label: "test") { [log] _ in log })
    }

    @Test("Once a day it is a warning from 30 days before its end on, and an error from 3 days on")
    func levels() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let watch = try watch(isGenerated: false)
        // Days that pass: 60 are left at first, then 31, 29.5, 29.5, 29, 28.5, 3.5, 2.5, and none since 1.5.
        for (days, levels) in [
            (0, []), (29, []), (1.5, [.warning]), (0, []), (0.5, []), (0.5, [.warning]), (25, [.warning]),
            (1, [.error]), (4, [.error]),
        ] as [(Double, [Logger.Level])] {
            let before = log.entries.count
            clock.advance(by: days * 86_400)
            watch.look()
            #expect(log.entries.dropFirst(before).map(\.level) == levels, "after \(days) days")
        }
        let texts = log.entries.map { "\($0.message)" }
        #expect(texts.first == "the certificate expires in 29 days: renew it, and start the server again")
        #expect(texts.last?.hasPrefix("the certificate has expired 1 day ago, and clients refuse it") == true)
        clock.advance(by: -100 * 86_400)
        #expect(watch.warning?.text == "the certificate is not valid yet: check the clock")
    }

    @Test("Of a certificate that is valid for six days, the second half is a warning, and the last tenth an error")
    func short() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let watch = try watch(isGenerated: false, days: 6)
        #expect(watch.warning == nil)
        clock.advance(by: 2.5 * 86_400)
        #expect(watch.warning == nil)
        clock.advance(by: 86_400)
        #expect(watch.warning?.level == .warning)
        clock.advance(by: 2 * 86_400)
        #expect(watch.warning?.level == .error)
        #expect(watch.warning?.text.contains("expires within a day") == true)
    }

    @Test("A certificate that the next start makes anew is a warning in its last day alone")
    func generated() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let watch = try watch(isGenerated: true)
        clock.advance(by: 58.5 * 86_400)
        #expect(watch.warning == nil)
        clock.advance(by: 86_400)
        #expect(watch.warning?.level == .warning)
        #expect(watch.warning?.text.contains("which makes another one") == true)
    }

    @Test("A look that finds nothing to say puts no later one off: a last day is told at its beginning")
    func lastDay() throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let watch = try watch(isGenerated: true)
        // Days that are left: 1.1, 0.9, 0.5, and none since 0.2.
        for (days, count) in [(58.9, 0), (0.2, 1), (0.4, 1), (0.7, 2)] as [(Double, Int)] {
            clock.advance(by: days * 86_400)
            watch.look()
            #expect(log.entries.count == count, "after \(days) days")
        }
    }

    @Test("A gateway on its own looks by itself, and ends when it is told to")
    func alone() async throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let watch = try watch(isGenerated: false)
        let group = ServiceGroup(
            services: [watch], logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
        let running = Task { try await group.run() }
        while clock.sleeperCount == 0 { await Task.yield() }
        #expect(log.entries.isEmpty)
        clock.advance(by: 58 * 86_400)
        while log.entries.isEmpty { await Task.yield() }
        #expect(log.entries.map(\.level) == [.error])
        await group.triggerGracefulShutdown()
        try await running.value
    }

    @Test("A running server says so in its log, and at /readyz, where it stays ready")
    func server() async throws {
        defer { try? FileManager.default.removeItem(atPath: directory) }
        let files = try files()
        try await ServerFixture.run(
            clock: clock,
            configuring: { $0.tls = .files(certificate: files.certificate, privateKey: files.privateKey) }
        ) { fixture in
            func ready() async throws -> Answer { try await fixture.send("GET", fixture.root("/readyz")) }
            func warnings() -> [String] {
                fixture.log.entries.map { "\($0.message)" }.filter { $0.contains("the certificate expires") }
            }
            #expect(try await ready().json["warning"] == nil)
            while clock.sleeperCount == 0 { await Task.yield() }
            #expect(warnings().isEmpty)
            clock.advance(by: 31 * 86_400)
            while clock.sleeperCount == 0 { await Task.yield() }
            #expect(warnings() == ["the certificate expires in 29 days: renew it, and start the server again"])
            let answer = try await ready()
            #expect(answer.status == 200 && answer.json["warning"]?.string == "certificate")
        }
    }
}
