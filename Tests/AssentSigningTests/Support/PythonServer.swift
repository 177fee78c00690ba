import AssentCore
import Foundation
import HTTPTypes
import TestSupport

/// The server of the second implementation, which was made from the page alone: each line that it reads is one call.
/// Its clock stands still unless a test moves it.
actor PythonServer: HTTPTransport {
    static let issuer = "https://am.example/signing"

    private static let program = """
        import base64, json, sys
        from tsp.framing import Refused
        from tsp.http_server import control
        from tsp.server import Server
        now = [1790000000]
        server = Server(sys.argv[1], clock=lambda: now[0])
        for line in sys.stdin:
            job = json.loads(line)
            if "control" in job:
                if job["control"] == "pass":
                    now[0] += job["content"]["seconds"]
                    answer = {}
                else:
                    try:
                        answer = control(server, job["control"], job["content"])
                    except Refused as refused:
                        answer = {"refused": refused.code}
            else:
                status, fields, body = server.handle(
                    job["method"], job["path"], job["headers"], base64.b64decode(job["body"]))
                answer = {"status": status, "headers": fields, "body": base64.b64encode(body).decode()}
            print(json.dumps(answer), flush=True)
        """

    private let process: SpawnedProcess

    init() throws {
        process = try SpawnedProcess(
            "/usr/bin/timeout", ["\(Patience.seconds)", PythonPeer.interpreter, "-c", Self.program, Self.issuer],
            directory: PythonPeer.folder, input: .pipe, output: .pipe)
    }

    private func ask(_ job: JSONObject) throws -> JSONObject {
        guard let input = process.input, let output = process.output else {
            throw PythonPeer.Failure(complaints: "no pipes")
        }
        try input.write(contentsOf: Data(JSONValue.object(job).serializedBytes() + [10]))
        var line: [UInt8] = []
        while line.last != 10 {
            guard let next = try output.read(upToCount: 1), let byte = next.first else {
                throw PythonPeer.Failure(complaints: "the server has ended")
            }
            line.append(byte)
        }
        return try JSONValue.parse(line).object ?? JSONObject()
    }

    @concurrent func send(_ call: HTTPCall) async throws -> HTTPReply {
        let body = try await call.body?.collect(upTo: 1 << 20) ?? []
        let path = String((call.request.path ?? "").dropFirst("/signing".count))
        var headers = JSONObject()
        for field in call.request.headerFields { headers[field.name.rawName] = .string(field.value) }
        let answer = try await ask([
            "method": .string(call.request.method.rawValue), "path": .string(path), "headers": .object(headers),
            "body": .string(Data(body).base64EncodedString()),
        ])
        var fields: HTTPFields = [:]
        for member in answer["headers"]?.object?.members ?? [] {
            if let name = HTTPField.Name(member.name) { fields[name] = member.value.string }
        }
        let status = Int(answer["status"]?.integer ?? 500)
        let content = Data(base64Encoded: answer["body"]?.string ?? "") ?? Data()
        return HTTPReply(
            HTTPResponse(status: .init(code: status), headerFields: fields), body: HTTPBody(Array(content)))
    }

    /// What a web page, a relying party or an administrator would ask for.
    @discardableResult
    func control(_ name: String, _ content: JSONObject = [:]) throws -> JSONObject {
        try ask(["control": .string(name), "content": .object(content)])
    }
}
