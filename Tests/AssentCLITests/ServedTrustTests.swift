#if os(Linux)
import AssentConfiguration
import AssentCore
import Foundation
import Testing

@testable import AssentCLI

@Suite("assent doctor verifies the trust files that a server serves")
struct ServedTrustTests {
    private typealias Home = VaultCommandTests.Home

    private let home: Home
    private let versions: String
    private let server: String

    init() throws {
        home = try Home()
        versions = home.directory.appending(path: "versions").path
        try FileManager.default.createDirectory(atPath: versions, withIntermediateDirectories: false)
        server = try home.file(
            "assent.yaml",
            """
            development: true
            publicURL: https://am.bank.example/am
            dataDirectory: data
            realms:
              alpha: {}
            trustFiles: {bank: versions}
            """)
        for name in ["first", "second"] {
            #expect(try home.run("config", "key", home.directory.appending(path: name).path).status == 0)
        }
    }

    private func sign(source: String = "https://am.bank.example/am/trust/bank", days: Int = 400) throws {
        let end = Date(timeIntervalSinceNow: TimeInterval(days * 86_400)).formatted(.iso8601.year().month().day())
        let pins = (1...2).map { number in
            "      - {spki: sha256/\(Data(repeating: UInt8(number), count: 32).base64EncodedString()), notAfter: \(end)}"
        }
        let draft = try home.file(
            "trust.yaml",
            """
            audience: bank-app/linux/production
            keys: [first.jwk, second.jwk]
            config: [second.jwk]
            hosts:
              api.bank.example:
                sends: [user]
                pins:
            \(pins.joined(separator: "\n"))
            issuer: https://am.bank.example/am/oauth2/alpha
            identity: \(Base64URL.encode([UInt8](repeating: 7, count: 32)))
            controls: {debugger: refuse, rooted: report, preload: refuse}
            source: [\(source)]
            """)
        let key = home.directory.appending(path: "first.pem").path
        let signed = try home.run("config", "sign", draft, versions, "--key", key)
        #expect(signed.status == 0, "\(signed.err)")
    }

    private func findings(inDays days: Int = 0) -> [Diagnosis] {
        let clock = LaterClock(days: days)
        return ServedTrustExamination(file: server, clock: clock).findings()
    }

    private struct LaterClock: WallClock {
        let days: Int
        var now: Date { Date(timeIntervalSinceNow: TimeInterval(days * 86_400)) }
        func sleep(until deadline: Date) async throws {}
    }

    @Test("A good chain is fine; an empty directory, and a source that is elsewhere, are notes")
    func good() throws {
        #expect(findings().map(\.verdict) == [.note])
        try sign()
        try sign()
        let found = findings()
        #expect(found.map(\.verdict) == [.fine] && found[0].text.contains("up to version 2"), "\(found)")
        try sign(source: "https://trust.bank.example/app")
        #expect(findings().contains { $0.verdict == .note && $0.text.contains("does not have the source") })
    }

    @Test("A gap, a file that is cut off, another number and another signer are problems, and so is what has ended")
    func bad() throws {
        for _ in 1...3 { try sign() }
        func file(_ version: Int) -> URL { URL(fileURLWithPath: "\(versions)/\(version)") }
        let second = try Data(contentsOf: file(2))
        func problems(_ change: () throws -> Void) throws -> String {
            try change()
            let found = findings().filter { $0.verdict == .problem }
            #expect(found.count == 1, "\(found)")
            return found.first?.text ?? ""
        }
        #expect(try problems { try FileManager.default.removeItem(at: file(2)) }.contains("2 comes next"))
        #expect(try problems { try second.prefix(100).write(to: file(2)) }.contains("2 is refused"))
        #expect(
            try problems { try (second.dropLast(4) + Data("AAAA".utf8)).write(to: file(2)) }.contains("signature"))
        #expect(try problems { try Data(contentsOf: file(3)).write(to: file(2)) }.contains("2 is refused"))
        try second.write(to: file(2))
        #expect(findings().map(\.verdict) == [.fine])
        let ended = findings(inDays: 500).filter { $0.verdict == .problem }.map(\.text)
        #expect(ended.contains { $0.contains("api.bank.example has no valid pin") }, "\(ended)")
    }

    @Test("The command says it among its findings")
    func command() throws {
        for _ in 1...3 { try sign() }
        try FileManager.default.removeItem(atPath: versions + "/2")
        let told = try home.run("doctor", "--config", server)
        #expect(told.status == 78 && told.out.contains("✗ the trust file bank"), "\(told.out)")
    }
}
#endif
