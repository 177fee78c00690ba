// The examples of AssentResources and of docs/resources.md: Scripts/check_examples.py compares what stands between the
// marks, and AssentResourcesTests the page's.
import Assent
import HTTPTypes

protocol UserCalls: Sendable {
    func sendAuthenticatedRequest(_ request: ResourceRequest) async throws(ResourceError) -> ResourceResponse
    func sendImplicitRequest(_ request: ResourceRequest) async throws(ResourceError) -> ResourceResponse
}

protocol DeviceCalls: Sendable {
    func sendRequest(_ request: ResourceRequest) async throws(ResourceError) -> ResourceResponse
    func sendUnauthenticatedRequest(_ request: ResourceRequest) async throws(ResourceError) -> ResourceResponse
}

protocol RequestMaking {
    static func makeResourceRequest(
        path: String, method: HTTPRequest.Method, parameters: JSONObject?,
        parametersEncoding: ParametersEncoding, body: HTTPBody?, multipartData: [MultipartPart],
        headers: HTTPFields, limits: HTTPLimits?, allowsUnsealed: Bool
    ) -> ResourceRequest
}

extension UserClient: UserCalls {}
extension DeviceClient: DeviceCalls {}
extension ResourceRequestFactory: RequestMaking {}

protocol Screen: Sendable {
    func confirm(_ fields: [DisplayField]) async -> Bool
    func show(_ text: String) async
}

func naming(_ configuration: inout Assent.Configuration) {
    // snippet: kinds begin
    configuration.resources = [
        "https://api.bank.example": .accessToken(of: [.user, .device]),
        "https://status.bank.example": .nothing,
    ]
    // snippet: kinds end
    configuration.resourceBase = "https://api.bank.example/v1"
}

func authenticated(_ assent: Assent) async throws -> [ResourceResponse] {
    // snippet: userClient begin
    let accounts = try await assent.userClient.sendAuthenticatedRequest(.get("accounts"))

    try await assent.userClient.implicitlyAuthenticate("ana", scopes: ["profile"])
    let greeting = try await assent.userClient.sendImplicitRequest(.get("greeting"))
    // snippet: userClient end
    return [accounts, greeting]
}

func approved(_ assent: Assent, _ payment: ResourceRequest, on screen: some Screen) async throws -> ResourceResponse {
    // snippet: userClientApproval begin
    let reply = try await assent.userClient.sendAuthenticatedRequest(payment) { approval in
        if approval.isFirstStep {
            guard await screen.confirm(approval.display) else { return .decline }
        }
        if let waiting = approval.waiting { await screen.show(waiting.text) }
        approval.agree()
        return .next
    }
    // snippet: userClientApproval end
    return reply
}

func browser(_ assent: Assent, open: (String) -> Void) async throws {
    // snippet: webLink begin
    let link = try await assent.userClient.webLink(to: "https://shop.bank.example/orders")
    open(link.url)
    // snippet: webLink end
}

func deviceCalls(_ assent: Assent) async throws -> [ResourceResponse] {
    // snippet: deviceClient begin
    try await assent.deviceClient.authenticateDevice(scopes: ["app-data"])
    let details = try await assent.deviceClient.sendRequest(.get("app-info"))
    let status = try await assent.deviceClient.sendUnauthenticatedRequest(.get("status"))
    // snippet: deviceClient end
    return [details, status]
}

func remember(_ assent: Assent, choose: @escaping @Sendable () async throws -> Secret) async throws {
    // snippet: enrolHere begin
    let container = try await assent.device.enrol { request in
        print("at least \(request.rules.minLength) characters")
        return try await choose()
    }
    print(container.userName, "is remembered here")
    // snippet: enrolHere end
}

func logIn(_ assent: Assent, pin: Secret) async throws {
    // snippet: logIn begin
    do throws(ResourceError) {
        try await assent.logIn("ana", pin: pin)
    } catch {
        guard error.code == .invalidPin else { throw error }
        print("\(error.triesLeft ?? 0) tries left")
    }
    // snippet: logIn end
}

func completion(_ assent: Assent, payment: ResourceRequest) {
    assent.userClient.sendAuthenticatedRequest(payment) { response, error in
        if let error { print("\(error.domain) \(error.number): \(error.detail)") }
        if let response { print(response.status, response.headerFields, response.data.count) }
    }
}

func shared(_ assent: Assent) throws -> (UserClient, DeviceClient) {
    try assent.share()
    return (try SharedUserClient.instance, try SharedDeviceClient.instance)
}

func built(_ document: [UInt8]) -> [ResourceRequest] {
    let transfer = RequestBuilder()
        .setMethod(.post)
        .setPath("transfers")
        .setParameters(["to": "Bob", "amount": "200.00"])
        .build()
    var draft = MutableResourceRequest(transfer)
    draft.parametersEncoding = .formURL
    let raw = ResourceRequestFactory.makeResourceRequest(path: "documents", method: .put, body: HTTPBody(document))
    return [transfer, draft.immutable, raw]
}

func suspended(_ assent: Assent, to path: String) {
    let request = ResourceRequest.get("statements/2025").download(to: path)
    // snippet: networkTask begin
    let task = assent.userClient.sendAuthenticatedRequest(request) { _, error in
        if let error { print(error.detail) }
    }
    task?.suspend()
    task?.resume()
    // snippet: networkTask end
}

func downloaded(_ assent: Assent, to path: String) async throws -> ResourceResponse {
    // snippet: download begin
    let request = ResourceRequest.get("statements/2025").download(to: path)
    let reply = try await assent.userClient.sendAuthenticatedRequest(request)
    // snippet: download end
    return reply
}

func uploaded(_ assent: Assent, from path: String) async throws -> ResourceResponse {
    let upload = try ResourceRequest(path: "documents", method: .put).upload(from: path)
    let stored = try await assent.userClient.sendAuthenticatedRequest(upload)
    return stored
}

func sealed(
    _ configuration: inout Assent.Configuration, key: Assent.PayloadEncryption.Key,
    nextKey: Assent.PayloadEncryption.Key
) {
    configuration.payloadEncryption = [
        "https://am.bank.example": .init(keys: [key, nextKey]),
        "https://api.bank.example": .init(keys: [key, nextKey], role: .device),
    ]
}
