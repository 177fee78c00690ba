import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Journey nodes")
struct NodeTests {
    private static func journey(_ name: String, entry: String, _ nodes: [String: NodeDefinition]) -> JourneyDefinition {
        JourneyDefinition(name: name, entry: entry, nodes: nodes)
    }

    private static func config(_ json: JSONValue) -> JSONObject { json.object ?? JSONObject() }

    private static let check = NodeDefinition(
        "DataStoreDecisionNode", outcomes: ["true": .node("level"), "false": .failure])

    private static let noted = journey(
        "Noted", entry: "credentials",
        [
            "credentials": JourneyFixture.credentials, "check": check,
            "level": NodeDefinition(
                "ModifyAuthLevelNode", config: config(["authLevelIncrement": 7]), outcomes: ["outcome": .node("note")]),
            "note": NodeDefinition(
                "SetSessionPropertiesNode",
                config: config(["properties": ["channel": "app"], "maxSessionTime": 5, "maxIdleTime": 1]),
                outcomes: ["outcome": .success]),
        ])

    @Test("Level, properties and limits reach the session")
    func sessionNodes() async throws {
        let fixture = try await JourneyFixture(more: [Self.noted])
        let page = try await fixture.start("Noted")
        let token = try await fixture.answer(page, [.string("ana"), .string(JourneyFixture.password)]).token()
        let session = try #require(try await fixture.sessions.live(token: token))
        #expect(session.authLevel == 7)
        #expect(session.properties["channel"]?.string == "app")
        #expect(session.expiresAt - session.createdAt == 300)
        #expect(session.maxIdle == 60)
    }

    @Test("A password is not kept for a later page, and what follows fails")
    func passwordIsNotKept() async throws {
        let late = Self.journey(
            "Late", entry: "credentials",
            [
                "credentials": NodeDefinition(
                    "PageNode", config: JourneyFixture.credentials.config, outcomes: ["outcome": .node("message")]),
                "message": NodeDefinition(
                    "MessageNode", config: Self.config(["message": "x"]),
                    outcomes: ["true": .node("check"), "false": .failure]),
                "check": NodeDefinition("DataStoreDecisionNode", outcomes: ["true": .success, "false": .failure]),
            ])
        let fixture = try await JourneyFixture(more: [late])
        let first = try await fixture.start("Late")
        let second = try Page(await fixture.answer(first, [.string("ana"), .string(JourneyFixture.password)]))
        await expectError(.loginFailed) { try await fixture.answer(second, [nil, 0]) }
    }

    @Test("Each choice goes its own way")
    func choice() async throws {
        let chosen = Self.journey(
            "Chosen", entry: "choice",
            [
                "choice": NodeDefinition(
                    "ChoiceCollectorNode", config: Self.config(["choices": ["no", "yes"], "defaultChoice": "yes"]),
                    outcomes: ["no": .failure, "yes": .node("credentials")]),
                "credentials": JourneyFixture.credentials,
                "check": NodeDefinition("DataStoreDecisionNode", outcomes: ["true": .success, "false": .failure]),
            ])
        let fixture = try await JourneyFixture(more: [chosen])
        let page = try await fixture.start("Chosen")
        #expect(page.content.prompts == [.choice("Choose", choices: ["no", "yes"], default: 1)])
        let next = try Page(await fixture.answer(page, [nil]))
        #expect(next.types == ["NameCallback", "PasswordCallback"])
        let other = try await fixture.start("Chosen")
        await expectError(.loginFailed) { try await fixture.answer(other, [0]) }
    }

    @Test("A page whose last node decides has that node's outcomes, and its nodes run once")
    func decidingPage() async throws {
        let page = Self.journey(
            "Page", entry: "page",
            [
                "page": NodeDefinition(
                    "PageNode",
                    config: Self.config([
                        "nodes": [
                            ["type": "ModifyAuthLevelNode", "authLevelIncrement": 2],
                            ["type": "UsernameCollectorNode"], ["type": "PasswordCollectorNode"],
                            ["type": "DataStoreDecisionNode"],
                        ]
                    ]), outcomes: ["true": .success, "false": .failure])
            ])
        let fixture = try await JourneyFixture(more: [page])
        let shown = try await fixture.start("Page")
        #expect(shown.types == ["NameCallback", "PasswordCallback"])
        let token = try await fixture.answer(shown, [.string("ana"), .string(JourneyFixture.password)]).token()
        #expect(try await fixture.sessions.live(token: token)?.authLevel == 2)
    }

    @Test("Who is shut out takes another way", arguments: [true, false])
    func active(isActive: Bool) async throws {
        let active = Self.journey(
            "Active", entry: "name",
            [
                "name": NodeDefinition("UsernameCollectorNode", outcomes: ["outcome": .node("active")]),
                "active": NodeDefinition(
                    "AccountActiveDecisionNode", outcomes: ["true": .node("password"), "false": .failure]),
                "password": NodeDefinition("PasswordCollectorNode", outcomes: ["outcome": .node("check")]),
                "check": NodeDefinition("DataStoreDecisionNode", outcomes: ["true": .success, "false": .failure]),
            ])
        let fixture = try await JourneyFixture(more: [active])
        try await Users(fixture.context).setActive(isActive, userID: fixture.ana.id)
        let page = try await fixture.start("Active")
        if isActive {
            let next = try Page(await fixture.answer(page, [.string("ana")]))
            _ = try await fixture.answer(next, [.string(JourneyFixture.password)]).token()
        } else {
            await expectError(.loginFailed) { try await fixture.answer(page, [.string("ana")]) }
        }
    }

    @Test("A name alone, without proof, is asked for a code whether or not it exists")
    func codeWithoutProof() async throws {
        let passwordless = Self.journey(
            "Passwordless", entry: "name",
            [
                "name": NodeDefinition("UsernameCollectorNode", outcomes: ["outcome": .node("otp")]),
                "otp": JourneyFixture.otp,
            ])
        let fixture = try await JourneyFixture(more: [passwordless])
        for name in ["ana", "ben", "nobody"] {
            let page = try await fixture.start("Passwordless")
            let next = try Page(await fixture.answer(page, [.string(name)]))
            #expect(next.types == ["TextInputCallback"])
            await expectError(.loginFailed) { try await fixture.answer(next, ["000000"]) }
        }
    }

    @Test("Codes after a name alone are wrong and then locked, whether or not the name exists and has a key for codes")
    func codesOfNobody() async throws {
        let otp = NodeDefinition(
            "OathTokenVerifierNode",
            outcomes: [
                "successOutcome": .success, "failureOutcome": .failure, "notRegisteredOutcome": .node("without"),
            ])
        let without = NodeDefinition(
            "MessageNode", config: Self.config(["message": "No key"]),
            outcomes: ["true": .failure, "false": .failure])
        let passwordless = Self.journey(
            "Passwordless", entry: "name",
            [
                "name": NodeDefinition("UsernameCollectorNode", outcomes: ["outcome": .node("otp")]), "otp": otp,
                "without": without,
            ])
        let second = Self.journey(
            "Second", entry: "credentials",
            [
                "credentials": JourneyFixture.credentials,
                "check": NodeDefinition("DataStoreDecisionNode", outcomes: ["true": .node("otp"), "false": .failure]),
                "otp": otp, "without": without,
            ])
        let fixture = try await JourneyFixture(
            otp: OneTimePasswordLimits(perUser: 2), more: [passwordless, second])
        for name in ["ana", "ben", "nobody"] {
            for attempt in 0..<4 {
                let page = try await fixture.start("Passwordless")
                let next = try Page(await fixture.answer(page, [.string(name)]))
                await expectError(attempt < 2 ? .loginFailed : .accountLocked) {
                    try await fixture.answer(next, ["000000"])
                }
            }
        }
        let refused = try await AuditLog(fixture.context).newest(100).filter { $0.event == .otpVerify }
        #expect(refused.count == 12)
        #expect(refused.filter { $0.userID == nil }.compactMap(\.reason) == Array(repeating: "unknownUser", count: 4))
        #expect(!"\(refused)".contains("nobody"))
        // The control: who has proved who they are hears that they have no key.
        let page = try await fixture.start("Second")
        let told = try Page(await fixture.answer(page, [.string("ben"), .string(JourneyFixture.password)]))
        #expect(told.types == ["TextOutputCallback", "ConfirmationCallback"])
    }

    @Test("Who has proved to be one user and then names another is not told whether that one has a key")
    func codeOfAnother() async throws {
        let renamed = Self.journey(
            "Renamed", entry: "credentials",
            [
                "credentials": JourneyFixture.credentials,
                "check": NodeDefinition("DataStoreDecisionNode", outcomes: ["true": .node("name"), "false": .failure]),
                "name": NodeDefinition("UsernameCollectorNode", outcomes: ["outcome": .node("otp")]),
                "otp": JourneyFixture.otp,
            ])
        let fixture = try await JourneyFixture(otp: OneTimePasswordLimits(perUser: 2), more: [renamed])
        for name in ["ben", "nobody"] {
            for attempt in 0..<4 {
                let first = try await fixture.start("Renamed")
                let second = try Page(await fixture.answer(first, [.string("ana"), .string(JourneyFixture.password)]))
                let third = try Page(await fixture.answer(second, [.string(name)]))
                #expect(third.types == ["TextInputCallback"])
                await expectError(attempt < 2 ? .loginFailed : .accountLocked) {
                    try await fixture.answer(third, ["000000"])
                }
            }
        }
    }

    @Test("Nobody becomes somebody else on the way")
    func changedUser() async throws {
        let changed = Self.journey(
            "Changed", entry: "credentials",
            [
                "credentials": JourneyFixture.credentials,
                "check": NodeDefinition("DataStoreDecisionNode", outcomes: ["true": .node("name"), "false": .failure]),
                "name": NodeDefinition("UsernameCollectorNode", outcomes: ["outcome": .node("otp")]),
                "otp": JourneyFixture.otp,
            ])
        let fixture = try await JourneyFixture(more: [changed])
        let first = try await fixture.start("Changed")
        let second = try Page(await fixture.answer(first, [.string("ben"), .string(JourneyFixture.password)]))
        let third = try Page(await fixture.answer(second, [.string("ana")]))
        await expectError(.loginFailed) { try await fixture.answer(third, [.string(fixture.code())]) }
        #expect(try await fixture.count("sessions") == 0)
    }

    @Test("A journey that goes round in circles ends, as does one with too many pages")
    func circles() async throws {
        let circle = Self.journey(
            "Circle", entry: "a",
            [
                "a": NodeDefinition("ModifyAuthLevelNode", outcomes: ["outcome": .node("b")]),
                "b": NodeDefinition("AccountActiveDecisionNode", outcomes: ["true": .success, "false": .node("a")]),
            ])
        let endless = Self.journey(
            "Endless", entry: "a",
            [
                "a": NodeDefinition(
                    "MessageNode", config: Self.config(["message": "x"]),
                    outcomes: ["true": .node("a"), "false": .success])
            ])
        let fixture = try await JourneyFixture(more: [circle, endless])
        await expectError(.internalFailure, "The journey Circle is broken: it goes round in circles.") {
            try await fixture.start("Circle").authID
        }
        var page = try await fixture.start("Endless")
        for _ in 1..<JourneyWalk.pageLimit { page = try Page(await fixture.answer(page, [nil, 0])) }
        let last = page
        await expectError(.loginFailed) { try await fixture.answer(last, [nil, 0]) }
    }

    @Test("A page that waits for something elsewhere may ask again as long as its journey takes, and once a second")
    func waits() async throws {
        let fixture = try await PatientNode.fixture(seconds: 120)
        var page = try await fixture.start("Patient")
        for _ in 0..<120 { page = try Page(await fixture.answer(page, [])) }
        let last = page
        await expectError(.loginFailed) { try await fixture.answer(last, []) }

        let slow = try await PatientNode.fixture(seconds: 1200)
        page = try await slow.start("Patient")
        for _ in 0..<109 {
            slow.clock.advance(by: 11)
            page = try Page(await slow.answer(page, []))
        }
        let late = page
        slow.clock.advance(by: 11)
        await expectError(.stepExpired) { try await slow.answer(late, []) }
    }
}
