#if os(Linux)
import ArgumentParser
import Assent
import AssentConfiguration
import AssentCore
import AssentTesting
import AssentTrust
import AssentVault
import Foundation
import HTTPTypes
import Logging
import Testing

@testable import AssentCLI

@Suite("assent config")
struct ConfigCommandTests {
    private typealias Home = VaultCommandTests.Home

    private let home: Home
    private var versions: String { home.directory.appending(path: "versions").path }

    init() throws {
        home = try Home()
        try FileManager.default.createDirectory(
            at: home.directory.appending(path: "versions"), withIntermediateDirectories: false)
    }

    private func path(_ name: String) -> String { home.directory.appending(path: name).path }

    private func day(_ days: Int) -> String {
        Date(timeIntervalSinceNow: TimeInterval(days * 86_400)).formatted(.iso8601.year().month().day())
    }

    /// A draft; `changes` replaces lines by their first word.
    private func draft(
        _ changes: [String: String] = [:], pins: [Int] = [400, 800], firstPin: Int = 1
    ) throws -> String {
        var lines = [
            "audience: bank-app/linux/production", "hosts:", "  api.bank.example:", "    sends: [user, device]",
            "    pins:",
        ]
        for (number, days) in pins.enumerated() {
            let pin = Data(repeating: UInt8(number + firstPin), count: 32).base64EncodedString()
            lines.append("      - {spki: sha256/\(pin), notAfter: \(day(days))}")
        }
        lines += [
            "keys: [first.jwk, second.jwk]", "config: [device.jwk]", "issuer: https://am.bank.example/am/oauth2/alpha",
            "identity: \(Base64URL.encode([UInt8](repeating: 7, count: 32)))",
            "controls: {debugger: refuse, rooted: report, preload: off}", "source: [https://trust.bank.example/app]",
        ]
        let changed = lines.map { line in
            changes[String(line.prefix { $0 != ":" })] ?? line
        }
        return try home.file("trust.yaml", (changed + [changes["more"]].compactMap(\.self)).joined(separator: "\n"))
    }

    private func makeKeys(_ names: String...) throws {
        for name in names { try home.makeKey(name) }
    }

    /// Signs what a test needs before it begins.
    private func prepare(_ draft: String) async throws {
        try await home.sign(draft, in: versions, key: path("first.pem"))
    }

    private func sign(_ draft: String, _ key: String = "first") throws -> (status: Int32, out: String, err: String) {
        try home.run("config", "sign", draft, versions, "--key", path("\(key).pem"))
    }

    /// How `config sign` ends and with which words, in this process: where each of many mistakes is refused.
    private func refusal(_ draft: String, _ key: String = "first") async throws -> (status: Int32, err: String) {
        var words = ""
        do {
            try await Outcome.run(Console(silent: true)) {
                do {
                    try await home.sign(draft, in: versions, key: path("\(key).pem"))
                } catch {
                    words = (error as? any AssentError)?.words ?? "\(error)"
                    throw error
                }
            }
            return (0, words)
        } catch let code as ExitCode {
            return (code.rawValue, words)
        }
    }

    @Test("Keys are made once, and only their user can read the private half")
    func keys() throws {
        let made = try home.run("config", "key", path("first"))
        #expect(made.status == 0, "\(made.err)")
        #expect(made.out.count == 44)
        let mode = try FileManager.default.attributesOfItem(atPath: path("first.pem"))[.posixPermissions] as? Int
        #expect(mode == 0o600)
        let before = try Data(contentsOf: URL(fileURLWithPath: path("first.pem")))
        let again = try home.run("config", "key", path("first"))
        #expect(again.status == 1 && again.err.contains("there already"), "\(again.err)")
        #expect(try Data(contentsOf: URL(fileURLWithPath: path("first.pem"))) == before)
        // Nor is half of a key left where the other half has no place.
        try Data().write(to: URL(fileURLWithPath: path("second.jwk")))
        #expect(try home.run("config", "key", path("second")).status == 1)
        #expect(!FileManager.default.fileExists(atPath: path("second.pem")))
        #expect(try Data(contentsOf: URL(fileURLWithPath: path("second.jwk"))).isEmpty)
    }

    @Test("A private key that other users may read signs nothing, and the same file does when they may not")
    func readable() async throws {
        try makeKeys("first", "second", "device")
        let (key, draft) = (path("first.pem"), try draft())
        try await prepare(draft)
        for mode in [0o644, 0o640, 0o604, 0o660, 0o610, 0o602] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: key)
            let said = try await refusal(draft)
            #expect(said.status == 78 && said.err.contains("chmod 600"), "\(String(mode, radix: 8))")
            // Of all these the program itself is asked once.
            guard mode == 0o644 else { continue }
            let refused = try sign(draft)
            #expect(refused.status == 78 && refused.err.contains("chmod 600"), "\(String(mode, radix: 8))")
            let rehearsed = try home.run("config", "rehearse", versions, "--key", key)
            #expect(rehearsed.status == 78 && rehearsed.err.contains("chmod 600"), "\(String(mode, radix: 8))")
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: versions) == ["1"])
        for mode in [0o600, 0o400] {
            try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: key)
            let signed = try sign(draft)
            #expect(signed.status == 0, "\(signed.err)")
        }
    }

    @Test("Of an app's file only the chain that it is in is taken, not another one of the same app and version")
    func elsewhere() async throws {
        try makeKeys("first", "second", "device")
        let other = path("others")
        try FileManager.default.createDirectory(atPath: other, withIntermediateDirectories: false)
        for _ in 1...2 { try await prepare(try draft()) }
        // The same keys and the same app: a rehearsal, say, or what a thief of a key has signed.
        for _ in 1...2 { try await home.sign(draft(pins: [500, 900]), in: other, key: path("first.pem")) }
        for number in ["/1", "/2"] {
            for (chain, shipped) in [(versions, other + number), (other, versions + number)] {
                let refused = try home.run("config", "check", chain, "--from", shipped)
                #expect(refused.status == 78 && refused.err.contains("does not have the file"), "\(refused.err)")
                #expect(!refused.out.contains("version 2 for"))
            }
            for chain in [versions, other] {
                let checked = try home.run("config", "check", chain, "--from", chain + number)
                #expect(checked.status == 0 && checked.out.contains("version 2 for"), "\(checked.err)")
            }
        }
        // A single file has no chain to compare.
        let single = try home.run("config", "check", versions + "/2", "--from", versions + "/1")
        #expect(single.status == 64 && single.err.contains("belongs to a directory"), "\(single.err)")
    }

    @Test("Versions are signed one after the other, and the chain is verified and shown")
    func chain() throws {
        try makeKeys("first", "second", "third", "device")
        let draft = try draft()
        for (number, key) in [(1, "first"), (2, "second")] {
            let signed = try sign(draft, key)
            #expect(
                signed.status == 0 && signed.out.contains("version \(number) for bank-app/linux/production"),
                "\(signed.err)")
        }
        let rotated = try self.draft(["keys": "keys: [third.jwk, second.jwk]"])
        #expect(try sign(rotated).status == 0)
        let refused = try sign(rotated, "first")
        #expect(refused.status == 78 && refused.err.contains("version 3 does not name"), "\(refused.err)")
        #expect(try sign(rotated, "third").status == 0)
        let checked = try home.run("config", "check", versions, "--from", versions + "/1")
        #expect(checked.status == 0, "\(checked.out) \(checked.err)")
        #expect(
            checked.out.contains("version 4 for")
                && checked.out.contains("api.bank.example gets the credential of user, device"))
        #expect(checked.out.contains("source: https://trust.bank.example/app/5"))
        let json = try JSONValue.parse(Array(try home.run("config", "check", versions, "--json").out.utf8))
        #expect(json["version"]?.integer == 4 && json["findings"]?.array?.isEmpty == true)
    }

    @Test("A changed, missing or foreign version breaks the chain")
    func broken() async throws {
        try makeKeys("first", "second", "device")
        let draft = try draft()
        for _ in 1...3 { try await prepare(draft) }
        let second = URL(fileURLWithPath: versions + "/2")
        let text = try String(contentsOf: second, encoding: .utf8)
        try Data(String(text.dropLast(4) + "AAAA").utf8).write(to: second)
        let changed = try home.run("config", "check", versions)
        #expect(changed.status == 78 && changed.err.contains("signature"), "\(changed.err)")
        try FileManager.default.removeItem(at: second)
        let missing = try home.run("config", "check", versions)
        #expect(missing.status == 78 && missing.err.contains("2 comes next"), "\(missing.err)")
        #expect(try sign(draft).status == 78, "nothing is signed behind a broken chain")
        try Data(text.utf8).write(to: second)
        let foreign = try sign(try self.draft(["audience": "audience: bank-app/linux/test"]))
        #expect(foreign.status == 78 && foreign.err.contains("use another directory"), "\(foreign.err)")
        try Data(try String(contentsOfFile: versions + "/3", encoding: .utf8).utf8).write(
            to: URL(fileURLWithPath: path("other")))
        #expect(try home.run("config", "check", path("other")).status == 0)
        try FileManager.default.removeItem(atPath: versions + "/3")
        let from = try home.run("config", "check", versions, "--from", path("other"))
        #expect(from.status == 78 && from.err.contains("does not have the file"), "\(from.err)")
    }

    @Test("What would lock apps out is not signed")
    func refused() async throws {
        try makeKeys("first", "second", "stranger", "device")
        for (pins, words) in [([400], "pins"), ([400, -2], "no backup")] {
            let signed = try await refusal(try draft(pins: pins))
            #expect(signed.status == 78 && signed.err.contains(words), "\(signed.err)")
        }
        let mistakes = [
            ("more", "colour: red", "unknown key"), ("keys", "keys: [first.jwk]", "keys"),
            ("keys", "keys: [first.jwk, first.jwk]", "keys"), ("keys", "keys: [first.pem, second.jwk]", "public key"),
            ("issuer", "issuer: http://am.bank.example", "issuer"), ("source", "source: [http://a.example]", "source"),
            ("controls", "controls: {debugger: refuse, rooted: report}", "preload"),
            ("more", "expires: tomorrow", "must be a day"), ("more", "expires: 2020-01-01", "exp"),
        ]
        for (name, line, words) in mistakes {
            let signed = try await refusal(try draft([name: line]))
            #expect(signed.status == 78 && signed.err.contains(words), "\(line): \(signed.err)")
        }
        let cut = try await refusal(
            try draft(["    pins": "    pins: [{spki: sha256/AAA, notAfter: 2040-01-01}]"], pins: []))
        #expect(cut.status == 78 && cut.err.contains(".pins[0].spki: "), "\(cut.err)")
        let stranger = try sign(try draft(), "stranger")
        #expect(stranger.status == 78 && stranger.err.contains("the draft does not name"), "\(stranger.err)")
        #expect(try FileManager.default.contentsOfDirectory(atPath: versions).isEmpty)
    }

    @Test("What ends within 30 days is said, and a pin without a backup is a problem")
    func endings() throws {
        try makeKeys("first", "second", "device")
        let signed = try sign(try draft(pins: [20, 800, 900]))
        #expect(signed.status == 0 && signed.out.contains("within 30 days"), "\(signed.err)")
        let checked = try home.run("config", "check", versions)
        #expect(checked.status == 0 && checked.out.contains("within 30 days"))
        let file = try TrustFile(shipped: String(contentsOfFile: versions + "/1", encoding: .utf8))
        let year = 365 * 86_400
        let later = TrustFinding.all(of: file.content, at: file.content.issuedAt + 2 * year + 80 * 86_400)
        #expect(later.contains { $0.isProblem && $0.text.contains("no backup") }, "\(later)")
        let last = TrustFinding.all(of: file.content, at: file.content.issuedAt + 3 * year)
        #expect(last.contains { $0.isProblem && $0.text.contains("has no valid pin") }, "\(last)")
    }

    @Test("A rehearsal says what remains when each key is lost, and writes nothing")
    func rehearsal() async throws {
        try makeKeys("first", "second", "device")
        try await prepare(try draft())
        let both = try home.run(
            "config", "rehearse", versions, "--key", path("first.pem"), "--key", path("second.pem"))
        #expect(both.status == 0, "\(both.out) \(both.err)")
        #expect(both.out.components(separatedBy: "signs version 2, and apps take it").count == 3)
        #expect(both.out.components(separatedBy: "apps call it with").count == 3)
        let one = try home.run("config", "rehearse", versions, "--key", path("first.pem"), "--json")
        #expect(one.status == 78)
        let losses = try JSONValue.parse(Array(one.out.utf8)).array ?? []
        #expect(losses.filter { $0["remains"] == .null }.count == 1)
        #expect(try FileManager.default.contentsOfDirectory(atPath: versions) == ["1"])
    }

    @Test("34: Pins were changed while an app was off: each rehearsal passes, and its next start has the last ones")
    func rotated() async throws {
        try makeKeys("first", "second", "device")
        for number in 1...3 {
            try await prepare(try draft(firstPin: number))
            let rehearsed = try home.run(
                "config", "rehearse", versions, "--key", path("first.pem"), "--key", path("second.pem"))
            #expect(rehearsed.status == 0, "\(rehearsed.out) \(rehearsed.err)")
        }
        let directory = versions
        @Sendable func version(_ name: String) -> String? {
            FileManager.default.contents(atPath: directory + "/" + name).map {
                String(decoding: $0, as: UTF8.self).trimmingCharacters(in: .newlines)
            }
        }
        let source = InMemoryTransport { exchange in
            guard let text = version(exchange.request.path?.split(separator: "/").last.map(String.init) ?? "") else {
                return HTTPReply(HTTPResponse(status: .notFound))
            }
            return HTTPReply(HTTPResponse(status: .ok), body: HTTPBody(text))
        }
        let (clock, valid) = (SystemClock(), Locked<[String: PinRequirement]>([:]))
        let keeper = TrustKeeper(
            shipped: try TrustFile(shipped: try #require(version("1"))),
            in: .init(
                store: MemorySecretStore(clock: clock), network: source, clock: clock,
                logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() }))
        ) { pins in valid.withLock { $0 = pins } }
        #expect(await keeper.ask() == 3)
        guard case .pins(let pins) = valid.withLock({ $0["api.bank.example"] }) else {
            Issue.record("the host has no pins")
            return
        }
        #expect(Set(pins) == Set(try (3...4).map { try Pin(sha256: [UInt8](repeating: $0, count: 32)) }))
    }

    @Test("doctor --trust takes hosts and pins out of the file, and says what is wrong with it")
    func doctor() async throws {
        try makeKeys("first", "second", "device")
        try await prepare(try draft())
        var client = ClientFile(
            server: "https://api.bank.example/am", realm: "/", cookieName: "session", clientID: "bank-app",
            redirectURI: "http://127.0.0.1/callback", scopes: ["openid"], journey: "Login", resources: [], pins: [])
        let examination = TrustExamination(file: versions + "/1", clock: SystemClock())
        #expect(examination.apply(to: &client).map(\.verdict) == [.fine])
        #expect(client.pins.first?.pins.count == 2 && client.resources.map(\.origin) == ["https://api.bank.example"])
        for (base, isNamed) in [("https://api.bank.example/v1", true), ("https://www.bank.example/v1", false)] {
            client.resourceBase = base
            let found = examination.apply(to: &client)
            let expected: [Diagnosis.Verdict] = isNamed ? [.fine] : [.fine, .problem]
            #expect(found.map(\.verdict) == expected, "\(found)")
            #expect(isNamed || found.last?.text.contains("www.bank.example, where resources.base leads") == true)
        }
        let none = TrustExamination(file: path("trust.yaml"), clock: SystemClock()).apply(to: &client)
        #expect(none.map(\.verdict) == [.problem])
    }

    @Test("A client's file names a trust file in the place of pins and origins")
    func clientFile() throws {
        let text = """
            server: https://am.bank.example/am
            client: {id: bank-app, redirectURI: "http://127.0.0.1/callback", scopes: [openid]}
            trust: versions/1
            resources: {base: "https://api.bank.example/v1"}
            """
        let file = try ClientFile.load(try home.file("client.yaml", text))
        #expect(file.trust == versions + "/1" && file.resourceBase == "https://api.bank.example/v1")
        #expect(try ClientFile.parse(file.yaml, file: "client.yaml") == file)
        for more in ["pins: {}", "singlePin: {}"] {
            #expect(throws: ConfigurationError.self) { try ClientFile.parse(text + "\n" + more, file: "client.yaml") }
        }
        let named = text.replacing("base:", with: "\"https://a.example\": accessToken, base:")
        #expect(throws: ConfigurationError.self) { try ClientFile.parse(named, file: "client.yaml") }
    }

    @Test("With --trust a client command goes by that file, whatever hosts and pins the client's own file names")
    func option() async throws {
        try makeKeys("first", "second", "device")
        try await prepare(try draft())
        let trust = versions + "/1"
        let own = ClientFile(
            server: "https://am.bank.example/am", realm: "/", cookieName: "session", clientID: "bank-app",
            redirectURI: "http://127.0.0.1/callback", scopes: ["openid"], journey: "Login",
            resources: [
                .init(origin: "https://api.bank.example", credential: "nothing"),
                .init(origin: "https://other.example", credential: "nothing"),
            ], resourceBase: "https://api.bank.example/v1", pins: [])
        let file = try home.file("client.yaml", own.yaml)
        for words in [["login"], ["logout"], ["status"], ["register"], ["admin", "audit"], ["admin", "reports"]] {
            _ = try AssentCommand.parseAsRoot(words + ["--config", file, "--trust", trust])
        }
        func loaded(_ options: String...) throws -> ClientFile {
            let parsed = try AssentCommand.parseAsRoot(["request", "GET", "/accounts", "--config", file] + options)
            return try #require(parsed as? RequestCommand).client.load().file
        }
        let trusting = try loaded("--trust", trust)
        #expect(trusting.trust == trust && trusting.pins.isEmpty && trusting.resources.isEmpty)
        #expect(trusting.resourceBase == own.resourceBase)
        // The control: without the option the client's own file says what is called.
        #expect(try loaded().resources.map(\.origin).contains("https://other.example"))

        let network = InMemoryTransport { _ in .json(200, [:]) }
        let places = Places(environment: ["HOME": home.directory.path])
        let assent = try ClientProfile(file: trusting, places: places, name: "default").assent(transport: network)
        #expect(assent.trustVersion == 1)
        let refused = await #expect(throws: ResourceError.self) {
            try await assent.deviceClient.sendUnauthenticatedRequest(.get("https://other.example/accounts"))
        }
        #expect(refused?.number == 10101)
        #expect(try await assent.deviceClient.sendUnauthenticatedRequest(.get("accounts")).status == 200)
        let hosts = network.exchanges.compactMap(\.request.authority)
        #expect(hosts.contains("api.bank.example") && !hosts.contains("other.example"), "\(hosts)")
        await assent.shutdown()
    }
}
#endif
