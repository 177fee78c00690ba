import AssentCore
import AssentStore
import Testing

@testable import AssentEngine

@Suite("Versions of an app")
struct AppVersionTests {
    /// The app with these versions.
    private static func app(_ named: [String: AppVersions.Status], others: AppVersions.Status) -> OAuthApp {
        ProviderFixture.pay { $0.versions = AppVersions(named: named, others: others) }
    }

    private static let versions: [String: AppVersions.Status] = [
        "3.2.0": .enabled, "3.1.0": .loginOnly, "3.0.0": .disabled,
    ]

    /// Why a registration is refused; `nil` when it is not.
    private static func refusal(
        _ fixture: ProviderFixture, _ version: JSONValue?, on node: OAuthProvider
    ) async throws -> OAuthError? {
        do {
            let token = try await fixture.initialToken()
            _ = try await fixture.register(AssertionKey(), token: token, ["software_version": version], on: node)
            return nil
        } catch let error as OAuthError {
            return error
        }
    }

    @Test("A version may register only if it is enabled, and whoever may not hears why")
    func registers() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        for (others, unknown) in [
            (AppVersions.Status.enabled, nil), (.loginOnly, OAuthError.Reason.versionUnknown),
            (.disabled, .versionUnknown),
        ] {
            let node = try await fixture.secondNode(apps: [Self.app(Self.versions, others: others)])
            let expected: [(JSONValue?, OAuthError.Reason?)] = [
                ("3.2.0", nil), ("3.1.0", .versionOutdated), ("3.0.0", .versionOutdated), ("9", unknown),
                // Nothing is like a version that is named but for its very bytes.
                ("3.2.0-x", unknown), ("3.2", unknown), ("v3.2.0", unknown), (nil, unknown),
            ]
            for (version, reason) in expected {
                let refusal = try await Self.refusal(fixture, version, on: node)
                #expect(refusal?.reason == reason, "\(others), \(String(describing: version))")
                #expect(refusal == nil || refusal?.code == .invalidClientMetadata)
            }
        }
        // A registration that is refused has not used its initial access token.
        #expect(
            try await fixture.count("registration_tokens", where: "uses_left = 0")
                == fixture.count("client_instances"))
    }

    @Test("What is too long or not one line is refused: version, platform, name of the device")
    func bounds() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        for (member, limit) in [("software_version", 64), ("assent_platform", 64), ("assent_device_name", 200)] {
            for value: JSONValue in [
                .string(String(repeating: "9", count: 10 << 10)), .string(String(repeating: "9", count: limit + 1)),
                "", "a\nb", "\u{202E}a", 3, ["3.2.0"],
            ] {
                let code = try await fixture.refusalCode {
                    _ = try await fixture.register(AssertionKey(), token: nil, [member: value])
                }
                #expect(code == "invalid_client_metadata", "\(member)")
            }
            let longest = JSONValue.string(String(repeating: "9", count: limit))
            let (registered, _) = try await fixture.instance([member: longest])
            #expect(registered.metadata.members.first { $0.name == member }?.value == longest)
        }
    }

    @Test("A disabled version gets no token, its tokens count no more on any node, and a change mends that")
    func disabled() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let said: [String: JSONValue?] = ["software_version": "3.0.0", "assent_platform": "linux"]
        let (registered, key) = try await fixture.instance(said)
        let (other, otherKey) = try await fixture.instance(["software_version": "3.1.0"])
        let own = try await fixture.ownToken(of: registered.id, key)
        let tokens = try await fixture.userTokens(of: registered.id, key)
        let others = try await fixture.ownToken(of: other.id, otherKey)

        for apps in [Self.app(Self.versions, others: .enabled), Self.app(["3.1.0": .loginOnly], others: .disabled)] {
            let node = try await fixture.secondNode(apps: [apps])
            for token in [own.accessToken, tokens.accessToken] {
                guard case .refused(.versionDisabled) = try await node.check(accessToken: token) else {
                    Issue.record("a token of a disabled version counts")
                    continue
                }
            }
            #expect(try await node.access(token: others.accessToken) != nil)
            await #expect {
                _ = try await fixture.ownToken(of: registered.id, key, on: node)
            } throws: { error in
                (error as? OAuthError)?.code == .unauthorizedClient
                    && (error as? OAuthError)?.reason == .versionOutdated
            }
            _ = try await fixture.ownToken(of: other.id, otherKey, on: node)
            // Where the file says nothing of versions, all are served.
            #expect(try await fixture.grants.access(token: own.accessToken) != nil)
        }

        // The app was updated, and says so: nothing else is needed.
        let app = Self.app(Self.versions, others: .enabled)
        let node = try await fixture.secondNode(apps: [app])
        let (instance, _) = try await node.registration.instance(registered.id, token: registered.token)
        var body = ProviderFixture.request(key, ["software_version": "3.2.0", "assent_platform": "linux"])
        body["client_id"] = .string(registered.id)
        let metadata = try InstanceMetadata(body, of: app, as: registered.id, clock: fixture.clock)
        _ = try await node.registration.change(instance, of: app, to: metadata, token: registered.token)
        #expect(try await node.access(token: own.accessToken)?.version == "3.2.0")
        _ = try await fixture.ownToken(of: registered.id, key, on: node)
    }

    @Test("The condition in SQL is the rule in Swift")
    func sameRule() async throws {
        let fixture = try await ProviderFixture(apps: [])
        for named in [[:], Self.versions, ["3.0.0": .disabled], ["3.0.0": AppVersions.Status.enabled]] {
            for others in AppVersions.Status.allCases {
                let versions = AppVersions(named: named, others: others)
                for version in ["3.2.0", "3.1.0", "3.0.0", "9", "", nil] as [String?] {
                    let rows = try await fixture.database.run(
                        .read(
                            """
                            SELECT count(*) AS served FROM (SELECT CAST(\(version) AS TEXT) AS v) x
                            WHERE \(versions.isServed("x.v"))
                            """))
                    let isServed = try rows.first?.integer("served") == 1
                    #expect(isServed == (versions.status(of: version) != .disabled), "\(named), \(others)")
                }
            }
        }
    }

    @Test("The condition in SQL about plain calls is the rule in Swift")
    func samePlainRule() async throws {
        let fixture = try await ProviderFixture(apps: [])
        let sealings: [[String: AppVersions.Sealing]] = [
            [:], ["3.2.0": .required], ["3.2.0": .off, "3.1.0": .allowed], ["3.2.0": .required, "9": .required],
        ]
        for sealing in sealings {
            for others in AppVersions.Sealing.allCases {
                let versions = AppVersions(named: Self.versions, sealing: sealing, othersSealing: others)
                for version in ["3.2.0", "3.1.0", "9", "3.2.0 ", "", nil] as [String?] {
                    let rows = try await fixture.database.run(
                        .read(
                            """
                            SELECT count(*) AS plain FROM (SELECT CAST(\(version) AS TEXT) AS v) x
                            WHERE \(versions.mayCallPlainly("x.v"))
                            """))
                    let mayBePlain = try rows.first?.integer("plain") == 1
                    #expect(mayBePlain == (versions.sealing(of: version) != .required), "\(sealing), \(others)")
                }
                // A version that is not named is one of the others, whatever else is said of it.
                #expect(versions.sealing(of: "9") == others)
            }
        }
        #expect(AppVersions().sealing(of: "1") == .allowed)
    }

    @Test("Introspection says kind, app, version and platform of access and refresh tokens; of a disabled version none")
    func introspected() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        let (registered, key) = try await fixture.instance(["software_version": "3.0.0", "assent_platform": "linux"])
        let own = try await fixture.ownToken(of: registered.id, key)
        let tokens = try await fixture.userTokens(of: registered.id, key)
        func introspected(_ token: Secret?, on node: OAuthProvider) async throws -> JSONValue {
            try await TokenIntrospection(node).answer(
                try ProviderFixture.parameters(
                    [:],
                    AssertionKey.form(
                        try await key.assertion(of: registered.id, now: fixture.clock),
                        ["token": try #require(token).reveal()])))
        }
        let disabled = try await fixture.secondNode(apps: [Self.app(Self.versions, others: .enabled)])
        let all: [(Secret?, String)] = [
            (own.accessToken, "device"), (tokens.accessToken, "user"), (tokens.refreshToken, "user"),
        ]
        for (token, kind) in all {
            let answer = try await introspected(token, on: fixture.grants)
            #expect(answer["assent_kind"]?.string == kind)
            #expect(answer["app_identifier"] == "pay" && answer["app_version"] == "3.0.0")
            #expect(answer["app_platform"] == "linux")
            #expect(try await introspected(token, on: disabled) == ["active": false])
        }
    }

    @Test("With open registration nobody needs a token, one that is there is refused, and the bounds hold")
    func open() async throws {
        let app = ProviderFixture.pay {
            $0.admission = .open
            $0.maximumInstances = 2
            $0.registrationsPerMinute = 3
        }
        let fixture = try await ProviderFixture(apps: [app])
        let token = try await fixture.initialToken()
        #expect(
            try await fixture.refusalCode { _ = try await fixture.register(AssertionKey(), token: token) }
                == "invalid_token")
        for _ in 1...2 { _ = try await fixture.register(AssertionKey(), token: nil) }
        #expect(
            try await fixture.refusalCode { _ = try await fixture.register(AssertionKey(), token: nil) }
                == "access_denied")
        await #expect(throws: EngineError(.tooManyRequests)) {
            _ = try await fixture.register(AssertionKey(), token: nil)
        }
        #expect(try await fixture.count("client_instances") == 2)
    }

    @Test("The list says version, platform and name of the device")
    func listed() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.pay])
        _ = try await fixture.instance([
            "software_version": "3.2.0", "assent_platform": "linux", "assent_device_name": "Ana's laptop",
        ])
        let admin = try await fixture.administrator()
        let listed = try #require(try await fixture.registrations.list(of: "pay", limit: 10, by: admin).first)
        #expect(listed.version == "3.2.0" && listed.platform == "linux" && listed.deviceName == "Ana's laptop")
        #expect(
            try await fixture.count("client_instances", where: "app_version = '3.2.0' AND app_platform = 'linux'") == 1)
    }
}
