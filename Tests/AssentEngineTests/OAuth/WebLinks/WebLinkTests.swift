import AssentCore
import AssentStore
import AssentTesting
import Testing

@testable import AssentEngine

@Suite("Links by which an app signs a browser in")
struct WebLinkTests {
    @Test("41: A link makes a session of the app's level and time, with an id of its own, that no journey has made")
    func session() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.linking])
        let access = try await fixture.linkingAccess()
        _ = try await fixture.database.run([
            SQLStatement("UPDATE sessions SET auth_level = 3"), SQLStatement("UPDATE grants SET auth_level = 3"),
        ])
        fixture.clock.advance(by: 20)
        let link = try await fixture.webLink(for: access)
        let session = try #require(try await fixture.live(try await fixture.use(link)))
        #expect(session.id != fixture.session.id && session.auditID != fixture.session.auditID)
        #expect(session.user.id == fixture.user.id && session.realm == "/alpha")
        #expect(session.authLevel == 3 && session.createdAt == fixture.session.createdAt)
        #expect(session.expiresAt == fixture.session.expiresAt && session.maxIdle == fixture.session.maxIdle)
        #expect(session.kind == .user && !session.isOfJourney && session.sender == nil)
        let made = try #require(try await fixture.audit(.webLinkCreate).first)
        let used = try #require(try await fixture.audit(.webLinkUse).first)
        for record in [made, used] {
            #expect(record.outcome == .success && record.userID == fixture.user.id)
            #expect(record.sessionAuditID == fixture.session.auditID)
            #expect(record.detail["target"]?.string == ProviderFixture.linkTarget)
        }
        #expect(used.detail["made"]?.string == session.auditID)
    }

    @Test("The level is the lesser one of the grant's and the session's")
    func level() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.linking])
        let access = try await fixture.linkingAccess()
        _ = try await fixture.database.run(SQLStatement("UPDATE sessions SET auth_level = 5"))
        #expect(try await fixture.live(try await fixture.use(fixture.webLink(for: access)))?.authLevel == 0)
        _ = try await fixture.database.run(SQLStatement("UPDATE grants SET auth_level = 9"))
        #expect(try await fixture.live(try await fixture.use(fixture.webLink(for: access)))?.authLevel == 5)
    }

    @Test("41: Looking does not use a link, using it does, and the id stands nowhere in the database")
    func once() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.linking])
        let link = try await fixture.webLink()
        let found = try #require(try await fixture.links.find(link))
        for _ in 1...3 { #expect(try await fixture.links.find(link) != nil) }
        #expect(try await fixture.count("web_links", where: "id = '\(link.reveal())' OR used_at IS NOT NULL") == 0)
        #expect(try await fixture.links.use(found) != nil)
        #expect(try await fixture.links.find(link) == nil)
        #expect(try await fixture.links.use(found) == nil)
        #expect(try await fixture.count("sessions", where: "grant_id IS NOT NULL") == 1)
        let refused = try await fixture.audit(.webLinkUse).filter { $0.outcome == .refused }
        #expect(refused.map(\.reason) == ["usedOrEnded"])
    }

    @Test("A form that comes for a used link is on record, ten times in a minute; no other link is")
    func repeated() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.linking])
        let (link, unused) = (try await fixture.webLink(), try await fixture.webLink())
        for other in [link, unused, Secret("unknown")] { try await fixture.links.noteRepeated(other) }
        #expect(try await fixture.audit(.webLinkUse).isEmpty)
        _ = try #require(try await fixture.use(link))
        for _ in 1...12 { try await fixture.links.noteRepeated(link) }
        let records = try await fixture.audit(.webLinkUse)
        let (used, refused) = (records.filter { $0.outcome == .success }, records.filter { $0.outcome == .refused })
        #expect(used.count == 1 && refused.count == 10)
        let (first, second) = (try #require(used.first), try #require(refused.first))
        #expect(second.reason == "usedOrEnded" && second.userID == first.userID && second.realm == first.realm)
        #expect(second.sessionAuditID == first.sessionAuditID)
        for name in ["client", "grant", "target"] { #expect(second.detail[name] == first.detail[name]) }
    }

    @Test("41: A link that 100 use at two nodes at once makes one session")
    func race() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.linking])
        let nodes = [fixture.context, try await fixture.secondNode().context]
        let link = try await fixture.webLink()
        let found = try #require(try await fixture.links.find(link))
        let made = try await withThrowingTaskGroup(of: Secret?.self) { group in
            for index in 0..<100 {
                group.addTask { try await WebLinks(nodes[index % 2]).use(found) }
            }
            return try await group.reduce(into: 0) { count, token in count += token == nil ? 0 : 1 }
        }
        #expect(made == 1)
        #expect(try await fixture.count("sessions", where: "grant_id IS NOT NULL") == 1)
        #expect(try await fixture.audit(.webLinkUse).count { $0.outcome == .success } == 1)
    }

    @Test("41: A link expires after a minute, also between its page and its form")
    func expiry() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.linking])
        let link = try await fixture.webLink()
        fixture.clock.advance(by: 59)
        let found = try #require(try await fixture.links.find(link))
        fixture.clock.advance(by: 1)
        #expect(try await fixture.links.find(link) == nil)
        #expect(try await fixture.links.use(found) == nil)
        #expect(try await fixture.count("web_links") == 1)
        _ = try await fixture.grants.purge()
        #expect(try await fixture.count("web_links") == 0)
    }

    @Test("41: Only a listed target is good, byte for byte, and only for an app that has links")
    func targets() async throws {
        var other = ProviderFixture.pay { $0.webLinks = ["https://other.example/"] }
        other.client.id = "other"
        let plain = ProviderFixture.pay
        let fixture = try await ProviderFixture(apps: [ProviderFixture.linking, other])
        let access = try await fixture.linkingAccess()
        let target = ProviderFixture.linkTarget
        for wrong in [
            nil, "", target + "/", target + "#x", String(target.dropLast()), target.uppercased(),
            target.replacing("https://shop", with: "https://SHOP"), target.replacing("shop", with: "s%68op"),
            " " + target, target + "\u{0}", "https://other.example/", "javascript:alert(1)", "//shop.example/orders",
        ] {
            let code = try await fixture.refusalCode { _ = try await fixture.webLink(for: access, to: wrong) }
            #expect(code == "invalid_target", "\(wrong ?? "nil")")
        }
        // The file has lost the links, or the client is none of an app.
        var configuration = fixture.grants.configuration
        configuration.apps["pay"] = plain
        let off = configuration
        #expect(
            try await fixture.refusalCode { _ = try await fixture.links.make(to: target, for: access, in: off) }
                == "web_link_disabled")
        let bank = try #require(try await fixture.grants.access(token: fixture.tokens().accessToken))
        #expect(try await fixture.refusalCode { _ = try await fixture.webLink(for: bank) } == "web_link_disabled")
        #expect(try await fixture.count("web_links") == 0)
    }

    @Test("No more than 30 links of a grant are made in a minute")
    func limit() async throws {
        let fixture = try await ProviderFixture(apps: [ProviderFixture.linking])
        let access = try await fixture.linkingAccess()
        for _ in 1...30 { _ = try await fixture.webLink(for: access) }
        await #expect(throws: EngineError(.tooManyRequests)) { _ = try await fixture.webLink(for: access) }
        fixture.clock.advance(by: 60)
        _ = try await fixture.webLink(for: access)
    }

    @Test("Targets that browsers or pages could read differently are refused in the file")
    func lists() {
        for good in ["https://shop.example/", "https://shop.example/a?b=c&d", "http://127.0.0.1:8080/x"] {
            #expect(ProviderFixture.pay { $0.webLinks = [good] }.validate().isEmpty, "\(good)")
        }
        for bad in [
            "", "http://shop.example/", "shop.example", "com.example.app:/x", "https://u@shop.example/",
            "https://shop.example/#f", "https://shop.example/a b", "https://shop.example/\"", "https://shop.example/;x",
            "https://[::1]/", "https://shop.example/" + String(repeating: "a", count: 2048),
            "https://sh\u{f6}p.example/",
        ] {
            #expect(ProviderFixture.pay { $0.webLinks = [bad] }.validate().count == 1, "\(bad.prefix(80))")
        }
        let many = (1...33).map { "https://shop.example/\($0)" }
        #expect(ProviderFixture.pay { $0.webLinks = many }.validate().count == 1)
        #expect(ProviderFixture.pay { $0.webLinks = [many[0], many[0]] }.validate().count == 1)
    }
}
