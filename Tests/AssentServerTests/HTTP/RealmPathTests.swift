import Testing

@testable import AssentServer

@Suite("A realm is found in each way that clients write it")
struct RealmPathTests {
    private let endpoints: Set<String> = ["authenticate", "sessions", "connect"]

    @Test(
        "Every form",
        arguments: [
            ("/authenticate", nil, "/", "authenticate"), ("/realms/root/authenticate", nil, "/", "authenticate"),
            ("/realms/root/realms/alpha/authenticate", nil, "/alpha", "authenticate"),
            ("/realms/alpha/authenticate", nil, "/alpha", "authenticate"),
            ("/alpha/authenticate", nil, "/alpha", "authenticate"),
            ("/realms/root/realms/a/realms/b/sessions/", nil, "/a/b", "sessions"),
            ("/authenticate", "/alpha", "/alpha", "authenticate"), ("/realms/alpha/sessions", "/", "/", "sessions"),
            ("/realms/root/connect/jwk_uri", nil, "/", "connect/jwk_uri"),
            ("/realms/alpha/authenticate", "root", "/", "authenticate"),
        ] as [(String, String?, String, String)])
    func forms(path: String, parameter: String?, realm: String, endpoint: String) throws {
        let read = try #require(RealmPath(path, realmParameter: parameter, endpoints: endpoints))
        #expect(read.realm == realm)
        #expect(read.endpoint == endpoint)
    }

    @Test(
        "What names no endpoint is none",
        arguments: [
            "", "/", "/nothing", "/realms", "/realms/alpha", "/realms/alpha/nothing",
            "/" + String(repeating: "realms/a/", count: 9) + "authenticate", "//authenticate", "/alpha//authenticate",
            "/realms/alpha/sessions//", "//", "/realms//alpha/authenticate", "/\u{301}authenticate",
        ])
    func none(path: String) {
        #expect(RealmPath(path, realmParameter: nil, endpoints: endpoints) == nil)
    }
}
