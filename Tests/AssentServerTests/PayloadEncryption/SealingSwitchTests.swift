import AssentCore
import AssentPayload
import AssentTesting
import Foundation
import HTTPTypes
import TestSupport
import Testing

@testable import AssentEngine
@testable import AssentServer

@Suite("Payload encryption: the server's switch")
struct SealingSwitchTests {
    private typealias Door = RegistrationDoor

    private static let versions =
        "\n        versions: {\"3.2.0\": {status: enabled, payloadEncryption: required}, "
        + "\"3.1.0\": {status: enabled, payloadEncryption: off}, default: {status: enabled}}"

    private static func file(_ text: String) -> String { ResourceInstanceTests.file(text, app: versions) }

    private static let json = ("Content-Type", "application/json")
    private static let form = ("Content-Type", "application/x-www-form-urlencoded")
    private static let code = "payload_encryption_required"
    private static let mismatch = "payload_encryption_mismatch"

    /// Sends sealed calls of one session, one number after the other.
    private struct Sealing {
        let client: SealedClient
        var number: UInt64 = 0

        init(
            _ node: ServerFixture, _ key: PayloadKeys.Listed, toGateway: Bool,
            as instance: (Door.Instance, at: Door)? = nil
        ) async throws {
            client = try await SealedClient(node, key, toGateway: toGateway, as: instance)
        }

        mutating func send(
            _ method: HTTPRequest.Method, _ url: String, _ fields: [(String, String)], body: [UInt8] = [],
            on node: ServerFixture? = nil
        ) async throws -> SealedClient.Opened {
            number += 1
            var all = HTTPFields()
            for (name, value) in fields {
                all.append(HTTPField(name: try #require(HTTPField.Name(name)), value: value))
            }
            if !body.isEmpty { all[.contentLength] = "\(body.count)" }
            let path = try #require(URLComponents(string: url)?.percentEncodedPath)
            let sealed = try client.sealed(client.request(method, path, all), body, number: number)
            return try await client.call(sealed, on: node)
        }
    }

    /// What an instance sends about itself, with a proof.
    private static func fields(
        _ method: String, _ instance: Door.Instance, at door: Door
    ) async throws -> [(String, String)] {
        let proof = try await door.proof(method, door.url(of: instance.id), by: instance.key, token: instance.token)
        return [("Authorization", "DPoP \(instance.token)"), ("DPoP", proof), json]
    }

    /// Says sealed that an instance was updated to the version whose calls must be.
    private static func update(_ instance: Door.Instance, by server: inout Sealing, at door: Door) async throws {
        let body = JSONValue.object(Door.repeated(instance, ["software_version": "3.2.0"])).serializedBytes()
        let answer = try await server.send(
            .put, door.url(of: instance.id), try await fields("PUT", instance, at: door), body: body)
        #expect(answer.status == 200, "\(answer.json)")
    }

    @Test(
        "3: A token of a version that must seal is refused when it comes plainly, at each door of each node",
        arguments: TheftTests.Place.allCases)
    func tokens(_ place: TheftTests.Place) async throws {
        try await place.run(editing: Self.file) { servers in
            let (key, door) = (try await SealedClient.key(servers[0]), try await Door(servers[0]))
            let instance = try await door.instance(["software_version": "9"])
            let granted = try await door.ownToken(instance.id, by: instance.key)
            let token = ServerFixture.bearer(try #require(granted.json["access_token"]?.string))
            var server = try await Sealing(servers[0], key, toGateway: false)
            var gateway = try await Sealing(servers[0], key, toGateway: true)
            // Another version may come as it likes.
            for node in servers {
                #expect(try await node.send("GET", node.gateway("/app-info"), token).status == 200)
                let sealed = try await gateway.send(.get, node.gateway("/app-info"), token, on: node)
                #expect(sealed.status == 200)
            }
            try await Self.update(instance, by: &server, at: door)
            let anonymous = try await gateway.send(.get, servers[0].gateway("/app-info"), token)
            #expect(anonymous.status == 403 && anonymous.json["code"]?.string == Self.mismatch, "\(anonymous.json)")
            server = try await Sealing(servers[0], key, toGateway: false, as: (instance, at: door))
            gateway = try await Sealing(servers[0], key, toGateway: true, as: (instance, at: door))
            for node in servers {
                let plain = try await node.send("GET", node.gateway("/app-info"), token)
                #expect(plain.status == 403 && plain.json["code"]?.string == Self.code, "\(plain.text)")
                #expect(plain["WWW-Authenticate"] == nil)
                #expect(plain.text.contains("payload encryption"))
                let userInfo = try await node.send("GET", node.oauth("userinfo"), token)
                #expect(userInfo.status == 403 && userInfo.error == Self.code, "\(userInfo.text)")
                let consents = try await node.send("GET", node.json("consents"), token)
                #expect(consents.status == 403 && consents.text.contains(Self.code), "\(consents.text)")
                // Sealed, each door says what it says to such a token.
                let sealed = try await gateway.send(.get, node.gateway("/app-info"), token, on: node)
                #expect(sealed.status == 200)
                let kind = try await server.send(.get, node.oauth("userinfo"), token, on: node)
                #expect(kind.status == 403 && kind.json["error"] == "token_kind", "\(kind.json)")
            }
        }
    }

    @Test("A stream that was opened sealed goes on when its caller is looked up, also where plain calls are refused")
    func streams() async throws {
        let file = { (text: String) in
            Self.file(text).replacing("accepts: [device]\n", with: "accepts: [device]\n      recheckSeconds: 1\n")
        }
        try await ServerFixture.run(editing: file) { fixture in
            let (key, door) = (try await SealedClient.key(fixture), try await Door(fixture))
            let (instance, other) = (try await door.instance(["software_version": "9"]), try await door.instance())
            func token(_ instance: Door.Instance) async throws -> String {
                let granted = try await door.ownToken(instance.id, by: instance.key)
                return try #require(granted.json["access_token"]?.string)
            }
            let (mine, foreign) = (try await token(instance), try await token(other))
            var server = try await Sealing(fixture, key, toGateway: false)
            try await Self.update(instance, by: &server, at: door)
            let gateway = try await Sealing(fixture, key, toGateway: true, as: (instance, at: door))
            let peers = Watched<[TestUpstream.Peer]>([])
            fixture.upstream.answer { _, peer in
                let fields = "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked"
                peer.send("HTTP/1.1 200 OK\r\n\(fields)\r\n\r\n5\r\nfirst\r\n")
                peers.update { $0.append(peer) }
            }
            let opened = Task {
                var gateway = gateway
                return try await gateway.send(.get, fixture.gateway("/app-info"), ServerFixture.bearer(mine))
            }
            await peers.wait { $0.count == 1 }
            // The control, which begins later and so is looked up later: its end shows that there was a look.
            let control = try await fixture.rawConnection()
            try await control.send(
                "GET /app-info HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer \(foreign)\r\n\r\n")
            #expect(await control.wait(for: "first"))
            #expect(try await door.manage("DELETE", other).status == 204)
            _ = await control.untilClosed()
            try #require(peers.value.first).send("4\r\nlast\r\n0\r\n\r\n")
            let reply = try await opened.value
            #expect(reply.status == 200 && String(decoding: reply.content, as: UTF8.self) == "firstlast")
        }
    }

    @Test("A proof beside a token that is refused for that is not spent", arguments: TheftTests.Place.allCases)
    func proofs(_ place: TheftTests.Place) async throws {
        try await place.run(editing: Self.file) { servers in
            let (node, key, door) = (
                servers[0], try await SealedClient.key(servers[0]), try await Door(servers[0])
            )
            let instance = try await door.instance(["software_version": "9"])
            let granted = try await door.ownToken(instance.id, by: instance.key, isBound: true)
            let token = try #require(granted.json["access_token"]?.string)
            var server = try await Sealing(node, key, toGateway: false)
            var gateway = try await Sealing(node, key, toGateway: true)
            try await Self.update(instance, by: &server, at: door)
            let anonymous = gateway
            gateway = try await Sealing(node, key, toGateway: true, as: (instance, at: door))
            let url = node.gateway("/app-info")
            let proof = try await door.proof("GET", url, by: instance.key, token: token)
            let fields = [("Authorization", "DPoP \(token)"), ("DPoP", proof)]
            let plain = try await node.send("GET", url, fields)
            #expect(plain.status == 403 && plain.json["code"]?.string == Self.code, "\(plain.text)")
            var other = anonymous
            let foreign = try await other.send(.get, url, fields)
            #expect(foreign.status == 403 && foreign.json["code"]?.string == Self.mismatch, "\(foreign.json)")
            let (first, second) = (
                try await gateway.send(.get, url, fields), try await gateway.send(.get, url, fields)
            )
            #expect(first.status == 200 && second.status == 401)
        }
    }

    @Test("3: Who registers, authenticates, or manages its registration must seal it, and nothing is spent before")
    func registration() async throws {
        try await ServerFixture.run(editing: Self.file) { fixture in
            let (key, door) = (try await SealedClient.key(fixture), try await Door(fixture))
            var server = try await Sealing(fixture, key, toGateway: false)
            let (own, initial) = (try ProofKey(), try await door.initialToken())
            let proof = try await door.proof("POST", door.url, by: own)
            let plain = try await door.register(
                own, token: initial, ["software_version": "3.2.0"], proofs: [proof])
            #expect(plain.status == 403 && plain.error == Self.code, "\(plain.text)")
            let body = JSONValue.object(Door.request(own, ["software_version": "3.2.0"])).serializedBytes()
            let made = try await server.send(
                .post, door.url, [("Authorization", "Bearer \(initial)"), ("DPoP", proof), Self.json], body: body)
            #expect(made.status == 201, "\(made.json)")
            let instance = Door.Instance(
                id: try #require(made.json["client_id"]?.string),
                token: try #require(made.json["registration_access_token"]?.string), key: own, metadata: made.json)

            let refused = try await door.ownToken(instance.id, by: own)
            #expect(refused.status == 403 && refused.error == Self.code, "\(refused.text)")
            for path in ["token/revoke", "introspect"] {
                let text = ServerFixture.query([("token", "x")] + (try await door.assertion(instance.id, by: own)))
                let answer = try await fixture.send("POST", fixture.oauth(path), [Self.form], text: text)
                #expect(answer.status == 403 && answer.error == Self.code, "\(path): \(answer.text)")
            }
            func asked() async throws -> [UInt8] {
                let assertion = try await door.assertion(instance.id, by: own)
                return Array(ServerFixture.query([("grant_type", "client_credentials")] + assertion).utf8)
            }
            let anonymous = try await server.send(
                .post, fixture.oauth("access_token"), [Self.form], body: try await asked())
            #expect(anonymous.status == 403 && anonymous.json["error"]?.string == Self.mismatch, "\(anonymous.json)")
            server = try await Sealing(fixture, key, toGateway: false, as: (instance, at: door))
            let granted = try await server.send(
                .post, fixture.oauth("access_token"), [Self.form], body: try await asked())
            #expect(granted.status == 200, "\(granted.json)")

            for method in ["GET", "DELETE"] {
                let answer = try await door.manage(method, instance)
                #expect(answer.status == 403 && answer.error == Self.code, "\(method): \(answer.text)")
            }
            let same = try await door.manage(
                "PUT", instance, body: Door.repeated(instance, ["client_name": "Ana's laptop"]))
            #expect(same.status == 403 && same.error == Self.code, "\(same.text)")
            let gone = try await server.send(
                .delete, door.url(of: instance.id), try await Self.fields("DELETE", instance, at: door))
            #expect(gone.status == 204)
        }
    }

    @Test("An assertion that came plainly is spent by its refusal")
    func assertions() async throws {
        try await ServerFixture.run(editing: Self.file) { fixture in
            let (key, door) = (try await SealedClient.key(fixture), try await Door(fixture))
            let instance = try await door.instance(["software_version": "9"])
            var server = try await Sealing(fixture, key, toGateway: false)
            try await Self.update(instance, by: &server, at: door)
            server = try await Sealing(fixture, key, toGateway: false, as: (instance, at: door))
            let assertion = try await door.assertion(instance.id, by: instance.key)
            let text = ServerFixture.query([("grant_type", "client_credentials")] + assertion)
            let plain = try await fixture.send("POST", fixture.oauth("access_token"), [Self.form], text: text)
            #expect(plain.error == Self.code)
            let sealed = try await server.send(
                .post, fixture.oauth("access_token"), [Self.form], body: Array(text.utf8))
            #expect(sealed.json["error"] == "invalid_client", "\(sealed.json)")
        }
    }

    @Test(
        "36: In a session of another installation no credential of this one counts, and no proof is spent",
        arguments: TheftTests.Place.allCases)
    func mismatches(_ place: TheftTests.Place) async throws {
        try await place.run(editing: Self.file) { servers in
            let (node, key, door) = (
                servers[0], try await SealedClient.key(servers[0]), try await Door(servers[0])
            )
            let (owner, other) = (try await door.instance(), try await door.instance())
            let granted = try await door.ownToken(owner.id, by: owner.key, isBound: true)
            let token = try #require(granted.json["access_token"]?.string)
            var foreign = try await Sealing(node, key, toGateway: true, as: (other, at: door))
            var own = try await Sealing(node, key, toGateway: true, as: (owner, at: door))
            var anonymous = try await Sealing(node, key, toGateway: true)
            let url = node.gateway("/app-info")
            for server in servers {
                func fields() async throws -> [(String, String)] {
                    let proof = try await door.proof("GET", url, by: owner.key, token: token)
                    return [("Authorization", "DPoP \(token)"), ("DPoP", proof)]
                }
                let shown = try await fields()
                let refused = try await foreign.send(.get, url, shown, on: server)
                #expect(refused.status == 403 && refused.json["code"]?.string == Self.mismatch, "\(refused.json)")
                #expect(try await own.send(.get, url, shown, on: server).status == 200, "the proof was not spent")
                // Where plain calls are taken, a session for which nobody has proved anything is as good.
                #expect(try await anonymous.send(.get, url, try await fields(), on: server).status == 200)
            }
            // Nor does it get a token there.
            var door2 = try await Sealing(node, key, toGateway: false, as: (other, at: door))
            let assertion = try await door.assertion(owner.id, by: owner.key)
            let text = ServerFixture.query([("grant_type", "client_credentials")] + assertion)
            let answer = try await door2.send(.post, node.oauth("access_token"), [Self.form], body: Array(text.utf8))
            #expect(answer.status == 403 && answer.json["error"]?.string == Self.mismatch, "\(answer.json)")
        }
    }

    @Test("A route whose calls must be sealed takes plain ones from nobody, also where it is public")
    func routes() async throws {
        func file(_ text: String) -> String {
            let upstream = text.firstMatch(of: /upstream: (http:\S+)/).map { String($0.1) } ?? ""
            let route = """
                    - name: sealed
                      path: /sealed
                      upstream: \(upstream)
                      public: true
                      payloadEncryption: required

                """
            return RegistrationDoor.file(text).replacing("  routes:\n", with: "  routes:\n" + route)
        }
        try await ServerFixture.run(editing: file) { fixture in
            var gateway = try await Sealing(fixture, try await SealedClient.key(fixture), toGateway: true)
            for method in ["GET", "POST"] {
                let plain = try await fixture.send(method, fixture.gateway("/sealed/x"))
                #expect(plain.status == 403 && plain.json["code"]?.string == Self.code, "\(plain.text)")
            }
            #expect(try await gateway.send(.get, fixture.gateway("/sealed/x"), []).status == 200)
            #expect(try await fixture.send("GET", fixture.gateway("/open")).status == 200, "the control")
        }
    }

    #if PostgreSQL && os(Linux)
    @Test("When a version is switched off, its sessions end at each node that has started with that file")
    func ended() async throws {
        let off = { (text: String) in
            text.replacing("default: {status: enabled}}", with: "default: {status: enabled, payloadEncryption: off}}")
        }
        try await TwoNodes.run(editing: off, editingBoth: Self.file) { nodes in
            let key = try await SealedClient.key(nodes.first)
            var gateway = try await Sealing(nodes.first, key, toGateway: true)
            let url = nodes.first.gateway("/open")
            #expect(try await gateway.send(.get, url, []).status == 200)
            let sealed = try gateway.client.sealed(gateway.client.request(.get, "/open"), number: 9)
            #expect(try await gateway.client.send(sealed.bytes, on: nodes.second).refusal == .unknownSession)
            let body = try SealedClient.handshake(nodes.second, key).request.body
            #expect(try await SealedClient.send(nodes.second, body).refusal == .off)
            #expect(try await gateway.send(.get, url, []).status == 200, "the other node has the old file")
        }
    }
    #endif

    @Test("A version that goes back to one that need not seal says so plainly")
    func back() async throws {
        try await ServerFixture.run(editing: Self.file) { fixture in
            let (key, door) = (try await SealedClient.key(fixture), try await Door(fixture))
            let instance = try await door.instance(["software_version": "9"])
            var server = try await Sealing(fixture, key, toGateway: false)
            try await Self.update(instance, by: &server, at: door)
            let body = Door.repeated(instance, ["software_version": "3.1.0"])
            #expect(try await door.manage("PUT", instance, body: body).status == 200)
            #expect(try await door.ownToken(instance.id, by: instance.key).status == 200)
        }
    }

    @Test("3 A version for which it is off gets no session at either listener; the others do, and its plain calls work")
    func off() async throws {
        try await ServerFixture.run(editing: Self.file) { fixture in
            let key = try await SealedClient.key(fixture)
            for toGateway in [false, true] {
                for (version, refusal) in [("3.1.0", PayloadRefusal.off), ("3.2.0", nil), ("3.1", nil)] {
                    let body = try SealedClient.handshake(
                        fixture, key, version: version, toGateway: toGateway
                    ).request.body
                    let answer = try await SealedClient.send(fixture, body, toGateway: toGateway)
                    #expect(answer.refusal == refusal, "\(version): \(answer.text)")
                    #expect(answer.status == (refusal == nil ? 200 : 403))
                }
            }
            let door = try await Door(fixture)
            let instance = try await door.instance(["software_version": "3.1.0"])
            let granted = try await door.ownToken(instance.id, by: instance.key)
            let token = ServerFixture.bearer(try #require(granted.json["access_token"]?.string))
            #expect(try await fixture.send("GET", fixture.gateway("/app-info"), token).status == 200)
        }
    }

    @Test("What the server warns of at its start is what has no key")
    func warning() {
        var app = OAuthApp(OAuthClient(id: "pay", kind: .public, redirectURIs: [], scopes: []))
        #expect(SealedVersions(["/": [app]]).warning == nil)
        app.versions = AppVersions(named: ["1": .enabled], sealing: ["1": .required], othersSealing: .required)
        let versions = SealedVersions(["/": [app]])
        #expect(versions.required == ["1 of the app pay of /", "default of the app pay of /"])
        #expect(versions.warning?.contains("1 of the app pay of / and 1 more") == true)
        #expect(versions.warning?.contains("assent admin payload-keys add") == true)
        #expect(SealedVersions([:], routes: ["api"]).warning?.contains("required for the route api, and") == true)
    }

    @Test("Where realms have apps of one name, it is off only if all say so, and never for an app of another name")
    func realms() {
        func app(_ sealing: AppVersions.Sealing) -> OAuthApp {
            var app = OAuthApp(OAuthClient(id: "pay", kind: .public, redirectURIs: [], scopes: []))
            app.versions = AppVersions(named: ["1": .enabled], sealing: ["1": sealing], othersSealing: .off)
            return app
        }
        let both = SealedVersions(["/": [app(.off)], "/alpha": [app(.required)]])
        #expect(!both.isOff("pay", version: "1"))
        #expect(both.isOff("pay", version: "2"))
        #expect(SealedVersions(["/": [app(.off)], "/alpha": []]).isOff("pay", version: "1"))
        #expect(!SealedVersions(["/": [app(.off)]]).isOff("other", version: "1"))
    }
}
