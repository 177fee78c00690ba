import AssentCore
import AssentJOSE
import AssentSigningProtocol
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("35: What installations of an app are told")
struct DeviceConfigurationsTests {
    private let fixture: ProviderFixture
    private let key: SoftwareSigningKey

    init() async throws {
        fixture = try await ProviderFixture(apps: [])
        key = try .generate(.es256)
    }

    /// A node with this app, which has not begun yet.
    private func node(
        realm: String = "/alpha", environment: String = "production", pin: PasswordRules? = nil,
        _ change: (inout OAuthApp) -> Void = { _ in }
    ) throws -> DeviceConfigurations {
        let app = ProviderFixture.pay(change)
        return try DeviceConfigurations(
            fixture.context, realm: realm, apps: [app.id: app],
            settings: DeviceConfigurationSettings(key: key, environment: environment), pin: pin)
    }

    private func told(
        _ node: DeviceConfigurations, version: String = "3.2.0", platform: String = "linux"
    ) async throws -> DeviceConfigurationContent {
        let question = try DeviceConfigurations.Question(app: "pay", version: version, platform: platform)
        let answer = try #require(try await node.answer(question, known: []))
        let document = try #require(answer.document)
        let message = try UnverifiedJWS.parse(document, limit: DeviceConfigurationContent.limit)
        #expect(message.type == DeviceConfigurationContent.type && message.header.members.count == 3)
        let signer = try ProtocolKey(key)
        #expect(message.keyID == signer.thumbprint.text)
        let verified = try message.verified(with: signer.jwk, algorithms: [.es256])
        return try DeviceConfigurationContent(plaintext: verified.payload, limit: DeviceConfigurationContent.limit)
    }

    /// The number that a node serves after it has begun.
    private func begun(_ node: DeviceConfigurations) async throws -> Int {
        try await node.begin()
        return try await told(node).version
    }

    private static func limited(_ app: inout OAuthApp) { app.versions = AppVersions(others: .loginOnly) }

    @Test("The number stays over restarts and nodes with the same content, and grows with another one")
    func grows() async throws {
        let first = try await begun(try node())
        #expect(first == Int(fixture.clock.epochSeconds))
        fixture.clock.advance(by: 60)
        #expect(try await begun(try node()) == first)
        let second = try await begun(try node(Self.limited))
        #expect(second == first + 60)
        // Back to what it was is a change, too; within one second, and with a clock that was set back.
        let third = try await begun(try node())
        #expect(third == second + 1)
        fixture.clock.advance(by: -3600)
        let fourth = try await begun(try node(Self.limited))
        #expect(fourth == third + 1)
        #expect(try await begun(try node(Self.limited)) == fourth)
    }

    @Test("The rules for a PIN are those of the keys that sign users in by one")
    func pin() throws {
        func settings(_ usage: SigningKeyUsage, _ mode: PasswordMode) throws -> SigningSettings {
            let cost = try #require(PasswordCost(logN: 15, r: 8, p: 1))
            var settings = SigningSettings(
                issuer: SigningIssuer(name: "https://a.example", realm: "/alpha"), name: "Bank",
                keys: [OfferedKey(usage: usage, label: "login", slot: .signing, policy: "pin")])
            settings.policies = [
                ProtectionPolicy(
                    id: "pin", biometry: false,
                    password: .init(
                        mode: mode, cost: cost, rules: PasswordRules(minLength: 6, maxLength: 12),
                        lock: .local(.none)))
            ]
            return settings
        }
        #expect(try settings(.auth, .assisted).loginRules?.minLength == 6)
        #expect(try settings(.auth, .local).loginRules == nil)
        #expect(try settings(.sign, .assisted).loginRules == nil)
    }

    @Test("A node that still has the old content goes on with its old number while a change is rolled out")
    func rolling() async throws {
        let old = try node()
        let before = try await begun(old)
        fixture.clock.advance(by: 60)
        let after = try await begun(try node(Self.limited))
        #expect(after > before)
        #expect(try await told(old).version == before)
    }

    @Test("Nodes that start at the same moment agree on one number")
    func race() async throws {
        let versions = try await withThrowingTaskGroup(of: Int.self) { group in
            for index in 0..<8 {
                let node = try self.node { app in if index % 2 == 1 { Self.limited(&app) } }
                group.addTask { try await begun(node) }
            }
            return try await group.reduce(into: [Int]()) { $0.append($1) }
        }
        // Each change of the content has a number of its own, whatever the order.
        let last = try #require(versions.max())
        let rows = try await fixture.database.run(.read("SELECT version FROM device_configs"))
        #expect(try rows.map { Int(try $0.integer("version")) } == [last])
        #expect(Set(versions).count >= 2 && last - Int(fixture.clock.epochSeconds) < 8)
    }

    @Test("Everything that is told is in the number, and so are environment, realm and app")
    func counted() async throws {
        let changes: [(inout OAuthApp) -> Void] = [
            { $0.versions = AppVersions(named: ["3.2.0": .enabled]) },
            { $0.versions = AppVersions(named: ["3.2.0": .disabled]) },
            { $0.versions = AppVersions(named: ["3.2.0": .disabled], sealing: ["3.2.0": .off]) },
            { $0.versions = AppVersions(othersSealing: .off) }, { $0.implicitScopes = ["accounts"] },
            { $0.allowsStateless = true }, { $0.webLinks = ["https://bank.example/a"] },
            { $0.minimumVersion = DottedVersion("3.1") },
        ]
        var seen = [try await begun(try node())]
        for change in changes { seen.append(try await begun(try node(change))) }
        seen.append(try await begun(try node(environment: "staging")))
        let pins = [6, 8].map { PasswordRules(minLength: $0, maxLength: 12) }
        for rules in pins {
            let node = try node(pin: rules)
            seen.append(try await begun(node))
            #expect(try await told(node).pin == rules)
        }
        #expect(Set(seen).count == changes.count + 4 && seen == seen.sorted())
        #expect(try await begun(try node(realm: "/")) == Int(fixture.clock.epochSeconds))
        #expect(try await fixture.count("device_configs") == 2)
        // What is not told is not in it.
        #expect(try await begun(try node(pin: pins.last) { $0.days = 3 }) == seen.last)
    }

    @Test("After a restore no number is given twice")
    func restored() async throws {
        let before = try await begun(try node(Self.limited))
        fixture.clock.advance(by: 1)
        _ = try await fixture.database.run(SQLStatement("DELETE FROM device_configs"))
        #expect(try await begun(try node()) > before)
    }

    @Test("Each version is told what the file says of it")
    func content() async throws {
        let node = try self.node {
            $0.versions = AppVersions(
                named: ["3.2.0": .enabled, "3.1.0": .loginOnly, "3.0.0": .disabled], others: .disabled,
                sealing: ["3.2.0": .required, "3.1.0": .off])
            $0.implicitScopes = ["accounts"]
            $0.webLinks = ["https://bank.example/a"]
            $0.minimumVersion = DottedVersion("3.1")
        }
        try await node.begin()
        for (version, status, payload) in [
            ("3.2.0", ServedStatus.enabled, ServedSwitch.on), ("3.1.0", .loginOnly, .off),
            ("3.0.0", .disabled, .on), ("9", .disabled, .on),
        ] {
            let told = try await told(node, version: version, platform: "ios")
            #expect(told.audience == "pay/ios/production" && told.appVersion == version)
            #expect(told.status == status && told.payloadEncryption == payload, "\(version)")
            #expect(told.implicit && !told.stateless && told.webLinks == ["https://bank.example/a"])
            #expect(told.minimumVersion?.text == "3.1")
            #expect(told.issuedAt == Int(fixture.clock.epochSeconds) && told.expires == told.issuedAt + 300)
        }
    }

    @Test("The tag is the same until something else than the time changes, and who has it gets no document")
    func tags() async throws {
        let (old, new) = (try node(), try node(Self.limited))
        try await old.begin()
        let question = try DeviceConfigurations.Question(app: "pay", version: "3.2.0", platform: "linux")
        let first = try #require(try await old.answer(question, known: []))
        fixture.clock.advance(by: 7200)
        let later = try #require(try await old.answer(question, known: ["\"x\"", first.tag]))
        #expect(later.tag == first.tag && later.document == nil)
        #expect(try await old.answer(question, known: ["W/" + first.tag])?.document == nil)
        #expect(try await old.answer(question, known: ["\"x\""])?.document != nil)
        try await new.begin()
        let changed = try #require(try await new.answer(question, known: [first.tag]))
        #expect(changed.tag != first.tag && changed.document != nil)
        for (version, platform) in [("3.2.1", "linux"), ("3.2.0", "ios")] {
            let other = try DeviceConfigurations.Question(app: "pay", version: version, platform: platform)
            #expect(try await old.answer(other, known: [])?.tag != first.tag)
        }
    }

    @Test("Nothing is told before the number is known, nor of another app")
    func refused() async throws {
        let node = try self.node()
        let question = try DeviceConfigurations.Question(app: "pay", version: "1", platform: "linux")
        await #expect(throws: EngineError.unavailable) { _ = try await node.answer(question, known: []) }
        let other = try DeviceConfigurations.Question(app: "other", version: "1", platform: "linux")
        #expect(try await node.answer(other, known: []) == nil)
    }

    @Test(
        "A question is about names",
        arguments: [
            ("", "1", "linux"), ("pay", "", "linux"), ("pay", "1", ""), ("pay/x", "1", "linux"),
            ("pay", "1 0", "linux"), ("pay", "1", "linux/x"), ("pay", "1", "ü"), ("pay", "ü", "linux"),
            ("pay", String(repeating: "1", count: 65), "linux"), (String(repeating: "p", count: 65), "1", "linux"),
        ])
    func questions(app: String, version: String, platform: String) {
        #expect(throws: OAuthError.invalidRequest("")) {
            _ = try DeviceConfigurations.Question(app: app, version: version, platform: platform)
        }
    }
}
