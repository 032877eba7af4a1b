//! The server as a layer around an application.

use super::message::ResponseBody;
use super::{HttpService, RequestError};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tower_layer::Layer;
use tower_service::Service;

/// A layer that answers one path, and the path of the metadata, and hands on everything else. See
/// [`Server::into_layer`](crate::mcp::Server::into_layer).
#[derive(Clone, Debug)]
pub struct HttpLayer {
    service: HttpService,
    path: Arc<str>,
}

impl HttpLayer {
    pub(in super::super) fn new(service: HttpService, path: String) -> Self {
        Self { service, path: path.into() }
    }

    pub(super) fn handle(&self) -> super::super::ServerHandle {
        self.service.handle()
    }

    pub(super) fn connections(&self) -> usize {
        self.service.shared.limits.connections
    }

    pub(super) fn receive(&self) -> std::time::Duration {
        self.service.shared.limits.receive
    }
}

impl<S> Layer<S> for HttpLayer {
    type Service = Mounted<S>;

    fn layer(&self, inner: S) -> Mounted<S> {
        Mounted { own: self.clone(), inner }
    }
}

/// An application with a server in front of one of its paths.
#[derive(Clone, Debug)]
pub struct Mounted<S> {
    own: HttpLayer,
    inner: S,
}

impl<S> Mounted<S> {
    fn is_ours<B>(&self, request: &Request<B>) -> bool {
        let path = request.uri().path();
        let metadata = self.own.service.shared.metadata.as_ref();
        path == &*self.own.path || metadata.is_some_and(|metadata| path == metadata.path())
    }
}

impl<S, B, R> Service<Request<B>> for Mounted<S>
where
    S: Service<Request<B>, Response = Response<R>>,
    S::Future: Send + 'static,
    S::Error: 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Send,
    R: Body<Data = Bytes> + Send + 'static,
    R::Error: Into<RequestError>,
{
    type Response = Response<ResponseBody>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, task: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(task)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        if self.is_ours(&request) {
            let answer = self.own.service.clone().answer(request);
            return Box::pin(async move { Ok(answer.await) });
        }
        let answer = self.inner.call(request);
        Box::pin(async move { Ok(answer.await?.map(ResponseBody::wrap)) })
    }
}
