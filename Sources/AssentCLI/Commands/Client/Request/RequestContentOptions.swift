import ArgumentParser
import Assent
import Foundation
import HTTPTypes

/// What `assent request` sends beside method and path: parameters, files or a body.
struct RequestContentOptions: ParsableArguments {
    @Option(
        name: .long,
        help:
            "A parameter, NAME=VALUE; may be repeated, and a name that is there several times is a list. It goes into the URL with GET, HEAD and DELETE, else into the content, as JSON. Nothing secret: others can see a command line."
    )
    var param: [String] = []

    @Flag(name: .long, help: "Send the parameters as a form (application/x-www-form-urlencoded) in place of JSON.")
    var form = false

    @Option(
        name: .long,
        help:
            "A file to send in a form with files, NAME=@FILE, for POST; may be repeated. Parameters become fields before the files."
    )
    var multipart: [String] = []

    @Option(
        name: .long, help: "The body to send, exactly as it is written: JSON unless --content-type names another type.")
    var data: String?

    @Option(
        name: .long, help: "A file whose content is sent, or - for standard input; questions then go to the terminal.",
        completion: .file())
    var dataFile: String?

    @Option(
        name: .long,
        help: "The media type of what is sent. Default: application/json with --data, else application/octet-stream.")
    var contentType: String?

    /// The most that is read from a file or from standard input.
    private static let bodyLimit = 64 << 20

    private var hasBody: Bool { data != nil || dataFile != nil }

    /// Refuses what cannot be read, contradicts something else, or would do nothing.
    ///
    /// - Throws: `ValidationError`.
    func check(_ method: HTTPRequest.Method, _ header: [String]) throws {
        guard data == nil || dataFile == nil else { throw ValidationError("Use --data or --data-file, not both.") }
        guard contentType == nil || hasBody else {
            throw ValidationError("--content-type belongs to --data or --data-file.")
        }
        guard !hasBody || param.isEmpty && multipart.isEmpty else {
            throw ValidationError("--data and --data-file are the whole content: leave --param and --multipart out.")
        }
        guard multipart.isEmpty || method == .post else {
            throw ValidationError("--multipart is for POST, and not for \(method).")
        }
        if form {
            guard !param.isEmpty else { throw ValidationError("--form belongs to --param.") }
            guard multipart.isEmpty else {
                throw ValidationError("--multipart is a form of its own: leave --form out.")
            }
            guard [.post, .put, .patch].contains(method) else {
                throw ValidationError("With \(method) parameters are in the URL: leave --form out.")
            }
        }
        if let data, (contentType ?? "application/json").hasPrefix("application/json") {
            do { _ = try JSONValue.parse(data) } catch {
                throw ValidationError("--data: \(error.explanation) Name another type with --content-type.")
            }
        }
        _ = try parameters()
        _ = try files()
        _ = try fields(header)
    }

    /// What is sent.
    ///
    /// - Throws: ``CommandFailure`` when a file cannot be read.
    func request(
        _ path: String, _ method: HTTPRequest.Method, _ header: [String]
    ) throws -> ResourceRequest {
        var headers = try fields(header)
        var body: HTTPBody?
        if let data { body = HTTPBody(data) }
        if let dataFile { body = HTTPBody([UInt8](try Self.content(of: dataFile))) }
        if let contentType {
            headers[.contentType] = contentType
        } else if body != nil, headers[.contentType] == nil {
            headers[.contentType] = data == nil ? "application/octet-stream" : "application/json"
        }
        return ResourceRequest(
            path: path, method: method, parameters: try parameters(), parametersEncoding: form ? .formURL : .json,
            body: body, multipartData: try files().map { try Self.part($0.name, $0.file) }, headers: headers)
    }

    /// What `--param` says; values are texts.
    private func parameters() throws -> JSONObject? {
        guard !param.isEmpty else { return nil }
        var values: [(name: String, values: [JSONValue])] = []
        for text in param {
            let name = text.prefix { $0 != "=" }
            guard !name.isEmpty, name.endIndex < text.endIndex else {
                throw ValidationError("--param is NAME=VALUE; \(text.debugDescription) is not.")
            }
            let value = JSONValue.string(String(text[text.index(after: name.endIndex)...]))
            if let index = values.firstIndex(where: { $0.name == name }) {
                values[index].values.append(value)
            } else {
                values.append((String(name), [value]))
            }
        }
        var parameters = JSONObject()
        for (name, values) in values { parameters[name] = values.count > 1 ? .array(values) : values.first }
        return parameters
    }

    /// What `--multipart` says.
    private func files() throws -> [(name: String, file: String)] {
        try multipart.map { text in
            guard let separator = text.firstRange(of: "=@"), separator.lowerBound > text.startIndex,
                separator.upperBound < text.endIndex
            else { throw ValidationError("--multipart is NAME=@FILE; \(text.debugDescription) is not.") }
            return (String(text[..<separator.lowerBound]), String(text[separator.upperBound...]))
        }
    }

    private static func part(_ name: String, _ file: String) throws -> MultipartPart {
        do {
            // Says why it cannot be read, which the part does not.
            try FileHandle(forReadingFrom: URL(fileURLWithPath: file)).close()
            return try MultipartPart(name: name, file: file)
        } catch {
            throw CommandFailure.unreadable(file, error, "Nothing was sent.")
        }
    }

    /// What `--header` says.
    private func fields(_ header: [String]) throws -> HTTPFields {
        var fields = HTTPFields()
        for text in header {
            let name = text.prefix { $0 != ":" }
            let value = text.dropFirst(name.count + 1).trimmingCharacters(in: .whitespaces)
            guard name.count < text.count, let name = HTTPField.Name(String(name)), HTTPField.isValidValue(value) else {
                throw ValidationError("--header is 'Name: value'; \(text.debugDescription) is not.")
            }
            guard name != .contentType || contentType == nil else {
                throw ValidationError("--content-type and --header both name the media type: use one.")
            }
            guard name != .contentType || multipart.isEmpty else {
                throw ValidationError("--multipart writes the media type itself: leave it out of --header.")
            }
            fields.append(HTTPField(name: name, value: value))
        }
        return fields
    }

    private static func content(of file: String) throws -> Data {
        var data = Data()
        do {
            let handle = try file == "-" ? .standardInput : FileHandle(forReadingFrom: URL(fileURLWithPath: file))
            while data.count <= bodyLimit, let more = try handle.read(upToCount: 1 << 16), !more.isEmpty {
                data += more
            }
        } catch {
            throw CommandFailure.unreadable(file == "-" ? "Standard input" : file, error, "Nothing was sent.")
        }
        guard data.count <= bodyLimit else {
            throw CommandFailure("\(file) has more than \(bodyLimit >> 20) MiB. Nothing was sent.")
        }
        return data
    }
}
