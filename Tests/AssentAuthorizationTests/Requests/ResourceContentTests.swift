import AssentAuthorization
import AssentCore
import Foundation
import HTTPTypes
import Testing

@Suite("What a request carries")
struct ResourceContentTests {
    private struct Sent: Equatable {
        var url: String
        var type: String?
        var body: String?
    }

    private func sent(_ request: ResourceRequest) async throws -> Sent {
        let call = try request.httpCall(base: resources)
        let body = try await call.body?.collect(upTo: 64 << 20)
        return Sent(
            url: String((call.request.url ?? "").dropFirst(resources.count)),
            type: call.request.headerFields[.contentType],
            body: body.map { String(decoding: $0, as: UTF8.self) })
    }

    @Test("12 The six methods are sent, each as it is", arguments: ResourceRequest.methods)
    func methods(method: HTTPRequest.Method) throws {
        #expect(ResourceRequest.methods.count == 6)
        for way in RequestMaker.allCases {
            let call = try way.make(ResourceRequest(path: "a", method: method)).httpCall(base: resources)
            #expect(call.request.method == method && call.body == nil && call.request.headerFields.isEmpty)
        }
    }

    @Test("12 Every other method is refused", arguments: ["OPTIONS", "TRACE", "CONNECT", "get", "Post", "PROPFIND"])
    func otherMethods(name: String) throws {
        let method = try #require(HTTPRequest.Method(name))
        #expect(RequestMaker.refusal(ResourceRequest(path: "a", method: method)) == .invalidMethod)
        let error = #expect(throws: ResourceError.self) {
            try ResourceRequest(path: "a", method: method).httpCall(base: resources, domain: .fetchImplicitResource)
        }
        #expect(error?.number == 10010 && error?.domain == .fetchImplicitResource)
    }

    @Test("13 Without parameters and methods it is a GET, and parameters are JSON where they are content")
    func defaults() async throws {
        let request = ResourceRequest(path: "a")
        #expect(request.method == .get && request.parametersEncoding == .json)
        #expect(RequestBuilder().build().parametersEncoding == .json && MutableResourceRequest().method == .get)
    }

    @Test("13 Parameters go into the URL or the content, by the method", arguments: ResourceRequest.methods)
    func parameters(method: HTTPRequest.Method) async throws {
        let parameters: JSONObject = ["q": "ü +&", "a": [1, true]]
        let form = "a=1&a=true&q=%C3%BC%20%2B%26"
        for encoding in ParametersEncoding.allCases {
            let request = ResourceRequest(
                path: "p", method: method, parameters: parameters, parametersEncoding: encoding)
            let expected: Sent =
                if [.get, .head, .delete].contains(method) {
                    Sent(url: "p?\(form)")
                } else if encoding == .json {
                    Sent(url: "p", type: "application/json", body: #"{"q":"ü +&","a":[1,true]}"#)
                } else {
                    Sent(url: "p", type: "application/x-www-form-urlencoded", body: form)
                }
            for way in RequestMaker.allCases { #expect(try await sent(way.make(request)) == expected) }
        }
    }

    @Test("13 JSON takes what a form does not; neither takes a name twice, at any depth")
    func shapes() async throws {
        for parameters in [["a": nil], ["a": ["b": 1]], ["a": [["b"]]], ["a": [nil]]] as [JSONObject] {
            let json = ResourceRequest(path: "p", method: .post, parameters: parameters)
            #expect(try await sent(json).body == JSONValue.object(parameters).serialized())
            for method in ResourceRequest.methods {
                let form = ResourceRequest(
                    path: "p", method: method, parameters: parameters, parametersEncoding: .formURL)
                #expect(RequestMaker.refusal(form) == .invalidRequest)
            }
        }
        let twice = JSONObject([.init(name: "a", value: 1), .init(name: "a", value: 1)])
        for parameters in [twice, ["b": .object(twice)], ["b": [[.object(twice)]]]] as [JSONObject] {
            for encoding in ParametersEncoding.allCases {
                for method in ResourceRequest.methods {
                    let request = ResourceRequest(
                        path: "p", method: method, parameters: parameters, parametersEncoding: encoding)
                    #expect(RequestMaker.refusal(request) == .invalidRequest)
                }
            }
        }
    }

    @Test("13 What is no number in JSON is never sent: a value of the app's with NaN in it makes no request")
    func notANumber() {
        for value in [Double.nan, .infinity, -.infinity] {
            #expect(throws: EncodingError.self) { try ResourceRequest.post("p", json: ["a": value]) }
            #expect(JSONNumber(value) == nil)
        }
    }

    @Test("13 10,000 parameters are content, and too long for a URL")
    func many() async throws {
        let parameters = JSONObject((0..<10_000).map { .init(name: "p\($0)", value: .integer($0)) })
        for encoding in ParametersEncoding.allCases {
            let request = ResourceRequest(
                path: "p", method: .post, parameters: parameters, parametersEncoding: encoding)
            let body = try #require(try await sent(request).body)
            let read =
                switch encoding {
                case .json: try JSONValue.parse(body).object?.members.count
                case .formURL:
                    try FormEncoding.parse(body, limits: .init(bytes: 1 << 20, items: 10_000)).items.count
                }
            #expect(read == 10_000)
        }
        #expect(RequestMaker.refusal(.get("p", parameters: parameters)) == .invalidRequest)
    }

    @Test("14 The body takes the place of parameters and encoding", arguments: ParametersEncoding.allCases)
    func body(encoding: ParametersEncoding) async throws {
        for method in ResourceRequest.methods {
            let request = ResourceRequest(
                path: "p", method: method, parameters: ["a": 1], parametersEncoding: encoding, body: HTTPBody("raw"))
            #expect(try await sent(request) == Sent(url: "p", type: "application/octet-stream", body: "raw"))
            let typed = RequestBuilder(request).setHeaders([.contentType: "text/plain"]).build()
            #expect(try await sent(typed) == Sent(url: "p", type: "text/plain", body: "raw"))
        }
    }

    @Test("14 A body without bytes is still the body, and parameters without names are still content")
    func empty() async throws {
        let body = ResourceRequest(path: "p", method: .post, parameters: ["a": 1], body: .empty)
        #expect(try await sent(body) == Sent(url: "p", type: "application/octet-stream", body: ""))
        let parameters = ResourceRequest(path: "p", method: .post, parameters: [:])
        #expect(try await sent(parameters) == Sent(url: "p", type: "application/json", body: "{}"))
    }

    @Test("14 A body is sent as it is given: read twice where it can be, and once where it cannot")
    func twice() async throws {
        for isReplayable in [true, false] {
            let readings = Locked(0)
            let body = HTTPBody(length: nil, isReplayable: isReplayable) {
                readings.withLock { $0 += 1 }
                let rest = Locked<[UInt8]?>([1, 2])
                return {
                    rest.withLock {
                        let chunk = $0
                        $0 = nil
                        return chunk
                    }
                }
            }
            let plain = try ResourceRequest(path: "p", method: .post, body: body).httpCall(base: resources)
            let form = try ResourceRequest.post("p", multipartData: [MultipartPart(name: "a", content: body)])
                .httpCall(base: resources)
            #expect(readings.withLock { $0 } == 0)
            for call in [plain, form] {
                #expect(call.body?.isReplayable == isReplayable)
                guard isReplayable else { continue }
                let first = try await call.body?.collect(upTo: 1 << 10)
                #expect(try await call.body?.collect(upTo: 1 << 10) == first)
            }
            #expect(readings.withLock { $0 } == (isReplayable ? 4 : 0))
        }
    }

    @Test("15 Only a POST has parts, and parts have no other content", arguments: ResourceRequest.methods)
    func multipart(method: HTTPRequest.Method) async throws {
        let parts = [MultipartPart(name: "f", data: [1], fileName: "x")]
        let request = ResourceRequest(
            path: "p", method: method, parameters: ["b": [1, 2], "a": "ü"], parametersEncoding: .formURL,
            multipartData: parts)
        #expect(RequestMaker.refusal(request) == (method == .post ? nil : .invalidRequest))
        let both = RequestBuilder(request).setBody(HTTPBody("x")).build()
        #expect(RequestMaker.refusal(both) == .invalidRequest)
        let nested = RequestBuilder(request).setParameters(["a": [:]]).build()
        #expect(RequestMaker.refusal(nested) == .invalidRequest)
        guard method == .post else { return }
        let result = try await sent(request)
        #expect(result.url == "p")
        #expect(result.type?.hasPrefix("multipart/form-data; boundary=") == true)
        let heads = result.body?.components(separatedBy: "\r\n").filter { $0.hasPrefix("Content-Disposition") }
        let named = ["a", "b", "b"].map { "Content-Disposition: form-data; name=\"\($0)\"" }
        #expect(heads == named + [#"Content-Disposition: form-data; name="f"; filename="x""#])
    }

    @Test("The request's own limits hold, and those of where it is sent without them")
    func limits() throws {
        let usual = HTTPLimits(replyBytes: 1)
        #expect(try ResourceRequest.get("a").httpCall(base: resources, limits: usual).limits == usual)
        let own = RequestBuilder().setLimits(HTTPLimits(replyBytes: 2)).build()
        #expect(try own.httpCall(base: resources, limits: usual).limits.replyBytes == 2)
    }
}
