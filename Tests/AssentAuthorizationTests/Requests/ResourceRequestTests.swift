import AssentAuthorization
import AssentCore
import HTTPTypes
import Testing

@Suite("ResourceRequest and the ways to it")
struct ResourceRequestTests {
    private func labels(_ value: Any) -> [String] { Mirror(reflecting: value).children.compactMap(\.label).sorted() }

    /// What is in a request, property by property.
    private func content(_ request: ResourceRequest) -> [String: String] {
        var content: [String: String] = [:]
        for (label, value) in Mirror(reflecting: request).children {
            switch value {
            case let body as HTTPBody: content[label ?? ""] = "\(body.inMemory ?? [])"
            case let parts as [MultipartPart]: content[label ?? ""] = "\(parts.map(\.name))"
            case let object as JSONObject: content[label ?? ""] = JSONValue.object(object).serialized()
            case let fields as HTTPFields: content[label ?? ""] = "\(fields.map { "\($0.name): \($0.value)" })"
            default: content[label ?? ""] = "\(value)"
            }
        }
        return content
    }

    private static let full = ResourceRequest(
        path: "p", method: .post, parameters: ["a": 1], parametersEncoding: .formURL, body: HTTPBody("b"),
        multipartData: [MultipartPart(name: "m", data: [])], headers: [.accept: "x"], limits: HTTPLimits(replyBytes: 1),
        allowsUnsealed: true)

    @Test(
        "17 Each property of a request can be changed, built and made by the factory", arguments: RequestMaker.allCases)
    func properties(way: RequestMaker) {
        #expect(labels(Self.full) == labels(MutableResourceRequest(Self.full)))
        let empty = content(ResourceRequest(path: ""))
        let full = content(Self.full)
        // A property that the way forgets would be as it is in an empty request.
        #expect(full.allSatisfy { empty[$0.key] != $0.value }, "\(full)")
        #expect(content(way.make(Self.full)) == full)
    }

    @Test("17 A builder has a step for each property, and the factory makes both kinds")
    func copies() {
        #expect(content(RequestBuilder(Self.full).build()) == content(Self.full))
        let made = ResourceRequestFactory.makeMutableResourceRequest(
            path: "p", method: .post, parameters: ["a": 1], parametersEncoding: .formURL, body: HTTPBody("b"),
            multipartData: [MultipartPart(name: "m", data: [])], headers: [.accept: "x"],
            limits: HTTPLimits(replyBytes: 1), allowsUnsealed: true)
        #expect(content(made.immutable) == content(Self.full))
    }

    @Test("17 What was made before does not change with what it was made from")
    func copySemantics() {
        var draft = MutableResourceRequest(Self.full)
        let before = draft.immutable
        var other = draft
        draft.path = "q"
        draft.headers[.accept] = nil
        other.method = .put
        #expect(content(before) == content(Self.full))
        #expect(draft.method == .post && other.path == "p" && other.headers[.accept] == "x")
        let start = RequestBuilder().setPath("p")
        let (one, two) = (start.setMethod(.put), start.setMethod(.delete))
        let built = one.build()
        _ = one.setPath("z")
        #expect(built.path == "p" && built.method == .put && two.build().method == .delete)
        #expect(start.build().method == .get)
    }

    @Test("The short forms say what they say")
    func shortForms() throws {
        struct Value: Encodable { let b = "x/y", a = 1 }
        #expect(ResourceRequest.get("p").method == .get && ResourceRequest.head("p").method == .head)
        #expect(ResourceRequest.delete("p", parameters: ["a": 1]).parameters == ["a": 1])
        let (object, list): (JSONValue, JSONValue) = (["z": 1, "a": 2], [1])
        let requests: [(ResourceRequest, HTTPRequest.Method, String)] = [
            (.post("p", json: object), .post, #"{"z":1,"a":2}"#),
            (try .post("p", json: Value()), .post, #"{"a":1,"b":"x/y"}"#),
            (.put("p", json: list), .put, "[1]"), (try .put("p", json: Value()), .put, #"{"a":1,"b":"x/y"}"#),
            (.patch("p", json: .null), .patch, "null"),
        ]
        for (request, method, body) in requests {
            #expect(request.method == method && request.headers[.contentType] == "application/json")
            #expect(request.body?.inMemory == Array(body.utf8))
        }
        let bytes = ResourceRequest.post("p", body: [1], contentType: "a/b", headers: [.accept: "x"])
        #expect(bytes.headers == [.accept: "x", .contentType: "a/b"] && bytes.body?.inMemory == [1])
        #expect(ResourceRequest.post("p", multipartData: [MultipartPart(name: "m", data: [])]).multipartData.count == 1)
    }
}
