#if os(Linux)
import AssentConfiguration
import AssentCore
import Foundation
import Testing

@testable import AssentCLI

@Suite("assent doctor verifies the trust files that a server serves")
struct ServedTrustTests {
    private typealias Home = VaultCommandTests.Home

    private static let yaml = """
        development: true
        publicURL: https://am.bank.example/am
        dataDirectory: data
        realms:
          alpha: {}
        trustFiles: {bank: versions}
        """

    private let home: Home
    private let versions: String
    private let server: String

    init() throws {
        home = try Home()
        versions = home.directory.appending(path: "versions").path
        try FileManager.default.createDirectory(atPath: versions, withIntermediateDirectories: false)
        server = try home.file("assent.yaml", Self.yaml)
        for name in ["first", "second"] { try home.makeKey(name) }
    }

    private func sign(
        source: String = "https://am.bank.example/am/trust/bank", days: Int = 400, payload: String = ""
    ) async throws {
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
              am.bank.example:
                sends: [user]
                pins:
            \(pins.joined(separator: "\n"))
            issuer: https://am.bank.example/am/oauth2/realms/root/realms/alpha
            identity: \(Base64URL.encode([UInt8](repeating: 7, count: 32)))
            controls: {debugger: refuse, rooted: report, preload: refuse}
            source: [\(source)]
            \(payload)
            """)
        let key = home.directory.appending(path: "first.pem").path
        try await home.sign(draft, in: versions, key: key)
    }

    private func findings(inDays days: Int = 0) async -> [Diagnosis] {
        let clock = LaterClock(days: days)
        return await ServedTrustExamination(file: server, clock: clock).findings()
    }

    private struct LaterClock: WallClock {
        let days: Int
        var now: Date { Date(timeIntervalSinceNow: TimeInterval(days * 86_400)) }
        func sleep(until deadline: Date) async throws {}
    }

    @Test("A good chain is fine; an empty directory, and a source that is elsewhere, are notes")
    func good() async throws {
        #expect(await findings().map(\.verdict) == [.note])
        try await sign()
        try await sign()
        let found = await findings()
        #expect(found.map(\.verdict) == [.fine] && found[0].text.contains("up to version 2"), "\(found)")
        try await sign(source: "https://trust.bank.example/app")
        #expect(await findings().contains { $0.verdict == .note && $0.text.contains("does not have the source") })
    }

    @Test("A gap, a file that is cut off, another number and another signer are problems, and so is what has ended")
    func bad() async throws {
        for _ in 1...3 { try await sign() }
        func file(_ version: Int) -> URL { URL(fileURLWithPath: "\(versions)/\(version)") }
        let second = try Data(contentsOf: file(2))
        func problems(_ change: () throws -> Void) async throws -> String {
            try change()
            let found = await findings().filter { $0.verdict == .problem }
            #expect(found.count == 1, "\(found)")
            return found.first?.text ?? ""
        }
        #expect(try await problems { try FileManager.default.removeItem(at: file(2)) }.contains("2 comes next"))
        #expect(try await problems { try second.prefix(100).write(to: file(2)) }.contains("2 is refused"))
        let forged = second.dropLast(4) + Data("AAAA".utf8)
        #expect(try await problems { try forged.write(to: file(2)) }.contains("signature"))
        #expect(try await problems { try Data(contentsOf: file(3)).write(to: file(2)) }.contains("2 is refused"))
        try second.write(to: file(2))
        #expect(await findings().map(\.verdict) == [.fine])
        let ended = await findings(inDays: 500).filter { $0.verdict == .problem }.map(\.text)
        #expect(ended.contains { $0.contains("am.bank.example has no valid pin") }, "\(ended)")
    }

    /// Two payload keys for the server.
    private static var payload: String {
        let end = Int(Date(timeIntervalSinceNow: 400 * 86_400).timeIntervalSince1970)
        let keys = (1...2).map { number in
            let x = Base64URL.encode([UInt8](repeating: UInt8(number), count: 32))
            let kid = Base64URL.encode(SHA2.sha256(Array(#"{"crv":"X25519","kty":"OKP","x":"\#(x)"}"#.utf8)))
            return "{kid: \"\(kid)\", x: \"\(x)\", notAfter: \(end)}"
        }
        let origins = "[\"https://am.bank.example\"]"
        return "payload: {suite: pe1, mode: server, keys: [\(keys.joined(separator: ", "))], origins: \(origins)}"
    }

    @Test("The newest version is compared with the server's file and its database, and each finding names the file")
    func compared() async throws {
        try await sign()
        #expect(await findings().map(\.verdict) == [.fine])
        try await sign(payload: Self.payload)
        let lacking = await findings()
        #expect(lacking.map(\.verdict) == [.fine, .problem, .problem], "\(lacking)")
        let start = "the trust file bank: the server lacks the payload key"
        #expect(lacking.dropFirst().allSatisfy { $0.text.hasPrefix(start) }, "\(lacking)")
        try await sign()
        #expect(await findings().map(\.verdict) == [.fine])
        let realm = """
              alpha:
                deviceConfig: {keyFile: first.pem, environment: production}
                apps:
                  bank-app:
                    redirectURIs: ["http://127.0.0.1/callback"]
                    scopes: [openid]
                    idTokenAlgorithm: ES256
            """
        _ = try home.file("assent.yaml", Self.yaml.replacing("  alpha: {}", with: realm))
        let unknown = await findings()
        #expect(unknown.map(\.verdict) == [.fine, .problem], "\(unknown)")
        #expect(unknown.last?.text.contains("in config") == true, "\(unknown)")
    }

    @Test("A named trust file that is served as well: each finding is told once; of any other file all are told")
    func named() async throws {
        try await sign(payload: Self.payload)
        let first = versions + "/1"
        func found(_ trust: String) async -> [Diagnosis] {
            await ServedTrustExamination(file: server, clock: LaterClock(days: 0)).findings(beside: trust)
        }
        func lacking(_ found: [Diagnosis]) -> [String] {
            found.map(\.text).filter { $0.contains("the server lacks the payload key") }
        }
        let newest = await found(first)
        #expect(lacking(newest).count == 2 && Set(lacking(newest)).count == 2, "\(newest)")
        #expect(newest.contains { $0.verdict == .fine && $0.text.contains("is version 1 of the trust file bank") })
        // What only an older version has is still told.
        try await sign()
        #expect(lacking(await findings()).isEmpty, "the control")
        #expect(lacking(await found(first)).count == 2)
        // The control: the same draft, signed for somewhere else, is no version of it.
        let elsewhere = home.directory.appending(path: "elsewhere").path
        try FileManager.default.createDirectory(atPath: elsewhere, withIntermediateDirectories: false)
        let key = home.directory.appending(path: "first.pem").path
        try await sign(payload: Self.payload)
        let draft = home.directory.appending(path: "trust.yaml").path
        try await home.sign(draft, in: elsewhere, key: key)
        let other = await found(elsewhere + "/1")
        #expect(lacking(other).count == 4, "\(other)")
        #expect(!other.contains { $0.text.contains("is told once") })
    }

    @Test("The command says it among its findings")
    func command() async throws {
        for _ in 1...3 { try await sign() }
        try FileManager.default.removeItem(atPath: versions + "/2")
        let told = try home.run("doctor", "--config", server)
        #expect(told.status == 78 && told.out.contains("✗ the trust file bank"), "\(told.out)")
        try FileManager.default.removeItem(atPath: versions + "/3")
        let named = try home.run("doctor", "--config", server, "--trust", versions + "/1")
        #expect(named.out.contains("is version 1 of the trust file bank"), "\(named.out)")
    }
}
#endif
