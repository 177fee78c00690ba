package import HTTPTypes

extension HTTPFields {
    /// Sets the one `Cookie` field, or removes it when `value` is empty. The setter of `HTTPFields` takes the value
    /// apart into a field for each cookie (for HTTP/2), which costs more than the rest of a request's header together.
    package mutating func setCookie(_ value: String) {
        self[fields: .cookie] = value.isEmpty ? [] : [HTTPField(name: .cookie, value: value)]
    }
}
