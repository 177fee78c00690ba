import AssentCore
import AssentEngine
import AssentStore
import Foundation
import Testing

@testable import AssentServer

@Suite("A path with another beginning for the service")
struct RewriteTests {
    private static func route(_ path: String, _ rewrite: String?) -> GatewayRoute {
        var route = GatewayRoute(
            name: "r", path: path, upstream: .init(["http://127.0.0.1:1"]), access: .everybody)
        route.rewrite = rewrite
        return route
    }

    @Test(
        "What stands behind the route's path stays as it was decided on",
        arguments: [
            ("/bank", "/api/v2", "/bank/accounts?a=%2F..", "/api/v2/accounts?a=%2F.."), ("/bank", "/", "/bank", "/"),
            ("/bank", "/", "/bank?x", "/?x"), ("/bank", "/", "/bank/", "/"), ("/bank", "/", "/bank/a", "/a"),
            ("/bank", "/api", "/bank", "/api"), ("/bank", "/api", "/bank/", "/api/"),
            ("/bank", "/api", "/BaNk/A", "/api/A"), ("/", "/api", "/", "/api/"), ("/", "/api", "/a/b", "/api/a/b"),
            ("/", "/", "/a", "/a"), ("/bank", nil, "/bank/a?b", "/bank/a?b"), ("/a%c3%a9", "/x", "/a%C3%A9/b", "/x/b"),
            ("/a@b", "/x", "/a%40B/c%40d%2Be", "/x/c%40d%2Be"), ("/a@b", nil, "/a%40b/c", "/a%40b/c"),
            ("/bank", "/bank", "/bank/bank", "/bank/bank"), ("/bank", "/", "/bank//evil.example/a", "/evil.example/a"),
        ] as [(String, String?, String, String)])
    func targets(path: String, rewrite: String?, target: String, expected: String) throws {
        let resource = try CanonicalResource("https://api.bank.example" + target)
        let route = Self.route(path, rewrite)
        #expect(GatewayRoute.answering(resource.path, of: [route]) != nil)
        #expect(route.target(of: resource) == expected)
    }

    @Test("A route answers its own path and what is below it, and no path that only begins like it")
    func answered() {
        let routes = [Self.route("/bank", nil), Self.route("/bank/vault", nil), Self.route("/bank/a:b", nil)]
        for (path, expected) in [
            ("/bank", "/bank"), ("/BANK/a", "/bank"), ("/bank/", "/bank"), ("/bank/vault", "/bank/vault"),
            ("/bank/A%3Ab/c", "/bank/a:b"), ("/bank/a%25b", "/bank"),
            ("/bank/Vault/a", "/bank/vault"), ("/bank/vaults", "/bank"), ("/banks", nil), ("/bank-admin/a", nil),
            ("/ban", nil), ("/", nil),
        ] as [(String, String?)] {
            #expect(GatewayRoute.answering(path, of: routes)?.path == expected, "\(path)")
        }
    }

    @Test("Nothing that callers write behind the path leads out of the new beginning, in one writing or another")
    func climbing() throws {
        let pieces = ["..", ".", "%2e", "%2E%2e", ".%2e", "%2f", "%5c", "..;", "%252e", "a", "", ";x", "%c0%ae"]
        let separators = ["/", "//", "/%2f", "%2F", "\\", "/;/"]
        var accepted = 0
        for first in pieces {
            for separator in separators {
                for last in pieces {
                    let target = "/bank/\(first)\(separator)\(last)"
                    guard let resource = try? CanonicalResource("https://api.bank.example" + target) else { continue }
                    accepted += 1
                    for rewrite in ["/", "/api", "/api/v2"] {
                        let rewritten = Self.route("/bank", rewrite).target(of: resource)
                        let again = try CanonicalResource("http://service.example" + rewritten)
                        #expect(again.target == rewritten, "\(target): it is read in one way only")
                        let isBelow = rewrite == "/" || rewritten == rewrite || rewritten.hasPrefix(rewrite + "/")
                        #expect(isBelow && !rewritten.hasPrefix("//"), "\(target): \(rewritten)")
                    }
                }
            }
        }
        #expect(accepted > 0 && accepted < pieces.count * pieces.count * separators.count)
    }

    @Test(
        "A new beginning is a path that is read in one way",
        arguments: [
            ("/", true), ("/api", true), ("/api/v2", true), ("", false), ("api", false), ("/api/", false),
            ("//evil.example", false), ("/a//b", false), ("/a/../b", false), ("/a/%2e%2e", false), ("/a%2fb", false),
            ("/a?b", false), ("/a#b", false), ("/a b", false), ("/a\\b", false), ("/a\r\nX: y", false),
            ("/\u{E9}", false), ("/%c3%a9", false), ("/%C3%A9", true),
        ])
    func beginnings(path: String, isGood: Bool) {
        #expect(GatewayRoute.canRewrite(to: path) == isGood)
    }

    @Test("Decision, advice, approval and audit are about the URL that the caller used, and the service gets the other")
    func gateway() async throws {
        let body = #"{"amount":"200.00"}"#
        try await ServerFixture.run { configuration in
            configuration.gateway?.routes[0].rewrite = "/internal/v2"
        } _: { fixture in
            let session = try await fixture.session()
            let mine = ServerFixture.session(session)
            let refused = try await fixture.send(
                "POST", fixture.gateway("/nods?a=1"), mine + [("Content-Type", "application/json")], text: body)
            #expect(refused.status == 307)
            let goto = try #require(refused.parameter("goto"))
            #expect(goto.hasPrefix(fixture.gateway("/nods?a=1&_txid=")) && !refused.text.contains("internal"))
            let id = try await fixture.completedTransaction("/nods?a=2", body: body, session: session)
            let paid = try await fixture.send(
                "POST", fixture.gateway("/nods?a=2&_txid=\(id)"), mine + [("Content-Type", "application/json")],
                text: body)
            #expect(paid.status == 201)
            #expect(fixture.upstream.requests.map(\.line) == ["POST /internal/v2/nods?a=2 HTTP/1.1"])
            let rows = try await fixture.rows("SELECT detail FROM audit")
            let details = try rows.map { try $0.text("detail") }
            #expect(!details.isEmpty && !details.contains { $0.contains("internal") })
            let stored = try await fixture.rows("SELECT resource FROM transactions")
            let resources = try stored.map { try $0.text("resource") }
            #expect(resources.count == 2 && resources.allSatisfy { $0.hasPrefix(fixture.gateway("/nods")) })
            // Policies know nothing of it, so it is no way around them.
            let direct = try await fixture.send("GET", fixture.gateway("/internal/v2/accounts"), mine)
            #expect(direct.status == 403)
            #expect(fixture.upstream.requests.count == 1)
        }
    }

    @Test("A path that climbs is refused before anybody decides")
    func refused() async throws {
        try await ServerFixture.run { configuration in
            configuration.gateway?.routes[0].rewrite = "/internal"
        } _: { fixture in
            let session = try await fixture.session()
            for target in [
                "/files/../accounts", "/files/%2e%2e/x", "/files/..%2fx", "/files/%2E./x", "/files/..;/x",
                "/files/%252e%252e/x", "/../x", "/files/..\\x",
            ] {
                let reply = try await fixture.raw(
                    "GET \(target) HTTP/1.1\r\nHost: localhost\r\niPlanetDirectoryPro: \(session)\r\nConnection: close\r\n\r\n"
                )
                #expect(reply.hasPrefix("HTTP/1.1 400 "), "\(target)")
            }
            #expect(fixture.upstream.requests.isEmpty)
        }
    }
}
